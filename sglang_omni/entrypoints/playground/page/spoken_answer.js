/** The answer that is being played: how much of it was heard, and what becomes of it when the user
 * speaks over it. */

export class SpokenAnswer {
  #player;
  #item = null;
  #stale = null;

  constructor(player) {
    this.#player = player;
  }

  /** Whether an answer is being played, or about to be. */
  get isPlaying() {
    return this.#item !== null;
  }

  /** Play more of an item. Returns false for one that was silenced already. */
  push(item, samples) {
    if (item === this.#stale) return false;
    if (item !== this.#item) this.#player.begin();
    this.#item = item;
    this.#player.push(samples);
    return true;
  }

  /** The item is complete. */
  end(item) {
    if (item === this.#item) this.#player.end();
  }

  /** Everything was played. */
  over() {
    this.#item = null;
  }

  /** Fall silent. Resolves to the event that tells the server how much was heard, null where
   * nothing was being played. */
  async silence() {
    const item = this.#item;
    if (item === null) return null;
    this.#stale = item;
    this.#item = null;
    const seconds = await this.#player.silence();
    const audio_end_ms = Math.floor(seconds * 1000);
    return { type: "conversation.item.truncate", item_id: item, content_index: 0, audio_end_ms };
  }
}
