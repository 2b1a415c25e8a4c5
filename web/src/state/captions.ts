/** Which part of a text was heard, while its speech is played. */

/** Characters a second, while it is not known yet how long the last segment is. */
const USUAL_RATE = 15;

interface Segment {
  /** The characters and the seconds of audio before the segment. */
  characters: number;
  seconds: number;
}

export class Captions {
  #segments: Segment[] = [];
  #characters = 0;
  #seconds = 0;
  #isComplete = false;

  /** Add the text of a segment, which the audio that follows says. */
  addText(text: string): void {
    this.#segments.push({ characters: this.#characters, seconds: this.#seconds });
    this.#characters += text.length;
  }

  /** Add seconds of audio. */
  addAudio(seconds: number): void {
    this.#seconds += seconds;
  }

  /** Mark the speech as complete. */
  end(): void {
    this.#isComplete = true;
  }

  /** Return the number of characters that are heard after so many seconds. */
  at(seconds: number): number {
    const index = this.#segments.findLastIndex((segment) => segment.seconds <= seconds);
    const segment = this.#segments[index];
    if (segment === undefined) return 0;
    const next = this.#segments[index + 1];
    const end = next?.characters ?? this.#characters;
    const inside = seconds - segment.seconds;
    const length = (next?.seconds ?? this.#seconds) - segment.seconds;
    const isKnown = next !== undefined || this.#isComplete;
    const share = isKnown
      ? (inside / Math.max(length, 1e-6)) * (end - segment.characters)
      : inside * USUAL_RATE;
    return Math.min(Math.round(segment.characters + share), end);
  }
}

/** Return the end of the word at a place in a text, so that captions advance by words. */
export function endOfWord(text: string, at: number): number {
  if (at <= 0) return 0;
  const rest = text.slice(at).search(/[\s\u3000-\u9fff]/);
  return rest < 0 ? text.length : at + rest;
}
