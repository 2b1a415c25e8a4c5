/** The last request in figures, its sound, its stages, and the events of a session. */

import { useEffect, useRef } from "preact/hooks";
import { type EventLine, eventLines } from "../state/events.ts";
import type { Figure } from "../state/measured.ts";
import { type LastRequest, type Stage, type Waveform, lastRequest } from "../state/requests.ts";
import { t } from "../text/index.ts";

/** Seconds above which a conversation is slow. */
const MOST: Partial<Record<Figure, number>> = { firstSound: 1.5, sinceSpeech: 1.5 };
/** Width of the bars' view box. */
const WIDTH = 1000;

export function Details() {
  const words = t();
  const request = lastRequest.value;
  return (
    <aside aria-labelledby="last-title">
      <h2 id="last-title">{words.lastRequest}</h2>
      {request ? <Request request={request} /> : <p class="hint">{words.nothingYet}</p>}
      {eventLines.value.length > 0 && <Events />}
    </aside>
  );
}

function Request({ request }: { request: LastRequest }) {
  const words = t();
  return (
    <>
      <dl id="last-figures">
        {request.figures.value.map(([name, value]) => (
          <div key={name} title={words.meanings[name]} class={isOver(name, value) ? "over" : ""}>
            <dt>{words.figures[name]}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {request.isSlow.value && <p class="slow">{words.slowServer}</p>}
      <Sound waveform={request.waveform.value} />
      <Stages request={request} />
    </>
  );
}

/** Whether a figure is worse than a conversation bears. */
function isOver(name: Figure, value: string): boolean {
  const most = MOST[name];
  return most !== undefined && parseFloat(value) > most;
}

/** All of the audio across the whole width. */
function Sound({ waveform: { peaks, seconds } }: { waveform: Waveform }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const words = t();
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return undefined;
    const draw = () => drawPeaks(element, peaks);
    const observer = new ResizeObserver(draw);
    observer.observe(element);
    draw();
    return () => observer.disconnect();
  }, [peaks]);
  const label = seconds > 0 ? words.waveformOf(seconds.toFixed(1)) : words.noSoundYet;
  return (
    <canvas
      ref={canvas}
      id="last-sound"
      class={seconds > 0 ? "" : "empty"}
      role="img"
      aria-label={label}
    />
  );
}

function drawPeaks(canvas: HTMLCanvasElement, peaks: number[]): void {
  canvas.width = canvas.clientWidth * devicePixelRatio;
  canvas.height = canvas.clientHeight * devicePixelRatio;
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.fillStyle = getComputedStyle(canvas).color;
  for (let x = 0; x < canvas.width; x += 1) {
    const first = Math.floor((x / canvas.width) * peaks.length);
    const last = Math.max(Math.floor(((x + 1) / canvas.width) * peaks.length), first + 1);
    const height = Math.max(0, ...peaks.slice(first, last)) * canvas.height;
    context.fillRect(x, (canvas.height - height) / 2, 1, height);
  }
}

function Stages({ request }: { request: LastRequest }) {
  const words = t();
  const timeline = request.timeline.value;
  const seconds = Math.max(timeline?.seconds ?? 0, 1e-9);
  return (
    <div
      id="last-stages"
      role="region"
      aria-label={words.stages}
      tabindex={0}
      hidden={timeline === null}
    >
      <table>
        <caption>{words.stagesCaption}</caption>
        <thead>
          <tr>
            {[words.stage, words.from, words.first, words.to].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
            <th scope="col" class="bar">
              {words.timeline}
            </th>
          </tr>
        </thead>
        <tbody>
          {timeline?.stages.map((stage, index) => (
            <StageRow key={index} stage={stage} seconds={seconds} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A row with a bar from the stage's start to its end, and a line at its first output. */
function StageRow({ stage, seconds }: { stage: Stage; seconds: number }) {
  const until = stage.ended_s ?? seconds;
  const toX = (time: number) => (time / seconds) * WIDTH;
  const { name, began_s, first_s, error } = stage;
  return (
    <tr>
      <th scope="row">
        {name}
        {error !== null && <span class="failed"> {error}</span>}
      </th>
      {[began_s, first_s, until].map((time, index) => (
        <td key={index} class="number">
          {time === null ? "" : time.toFixed(3)}
        </td>
      ))}
      <td class="bar">
        <svg viewBox={`0 0 ${WIDTH} 10`} preserveAspectRatio="none" aria-hidden="true">
          <rect
            x={toX(began_s)}
            y={1}
            width={Math.max(toX(until - began_s), WIDTH / 200)}
            height={8}
          />
          {first_s !== null && <line x1={toX(first_s)} x2={toX(first_s)} y1={0} y2={10} />}
        </svg>
      </td>
    </tr>
  );
}

function Events() {
  const list = useRef<HTMLOListElement>(null);
  const lines = eventLines.value;
  useEffect(() => {
    list.current?.scrollTo({ top: list.current.scrollHeight });
  }, [lines]);
  return (
    <details>
      <summary>{t().events}</summary>
      <ol ref={list} id="talk-events" aria-label={t().eventsOf} tabindex={0}>
        {lines.map((line) => (
          <Line key={line.key} line={line} />
        ))}
      </ol>
    </details>
  );
}

function Line({ line: { text, count } }: { line: EventLine }) {
  return <li>{count.value > 1 ? `${text} × ${count.value}` : text} </li>;
}
