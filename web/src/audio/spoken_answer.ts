/** Playback of a spoken answer, and its truncation when the user interrupts it. */

import type { RealtimeEvent } from "../server/realtime.ts";
import type { Player } from "./player.ts";

export class SpokenAnswer {
  readonly #player: Player;
  #item: string | null = null;
  #stoppedItem: string | null = null;
  /** Seconds that the player was pushed before the item. */
  startSeconds = 0;

  constructor(player: Player) {
    this.#player = player;
  }

  /** Whether an answer is playing or will play. */
  get isPlaying(): boolean {
    return this.#item !== null;
  }

  /** Play samples of an item. Returns false if the item was stopped. */
  push(item: string, samples: Float32Array): boolean {
    if (item === this.#stoppedItem) return false;
    if (item !== this.#item) this.startSeconds = this.#player.startItem();
    this.#item = item;
    this.#player.push(samples);
    return true;
  }

  /** Mark the item as complete. */
  end(item: string): void {
    if (item === this.#item) this.#player.end();
  }

  /** Handle the end of playback. */
  clear(): void {
    this.#item = null;
  }

  /** Stop playback. Resolves to the event that truncates the item to the part that was played; null
   * if nothing was playing. */
  async stop(): Promise<RealtimeEvent | null> {
    const item = this.#item;
    if (item === null) return null;
    this.#stoppedItem = item;
    this.#item = null;
    const seconds = await this.#player.stop();
    const audio_end_ms = Math.floor(seconds * 1000);
    return {
      type: "conversation.item.truncate",
      item_id: item,
      content_index: 0,
      audio_end_ms,
    };
  }
}
