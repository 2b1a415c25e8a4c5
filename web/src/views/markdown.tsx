/** Shows Markdown. Its parts become elements; nothing is ever parsed as HTML. */

import { type MarkedToken, type Token, lexer } from "marked";
import type { ComponentChildren } from "preact";
import { CopyButton } from "./controls.tsx";

/** Links to anything but web pages and mail addresses are shown as text. */
const SAFE_LINK = /^(https?:|mailto:)/;
const HEADINGS = ["h3", "h4", "h5", "h6"] as const;

/** The elements of a Markdown text. */
export const Markdown = ({ text }: { text: string }) => (
  <div class="markdown">{lexer(text).map(showBlock)}</div>
);

const showAll = (tokens: Token[] | undefined, fallback: string): ComponentChildren =>
  tokens ? tokens.map(showInline) : fallback;

function showBlock(token: Token, key: number): ComponentChildren {
  const block = token as MarkedToken;
  switch (block.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      // The page's own headings come before those of an answer.
      const Heading = HEADINGS[Math.min(block.depth, HEADINGS.length) - 1] ?? "h6";
      return <Heading key={key}>{showAll(block.tokens, block.text)}</Heading>;
    }
    case "paragraph":
      return <p key={key}>{showAll(block.tokens, block.text)}</p>;
    case "blockquote":
      return <blockquote key={key}>{block.tokens.map(showBlock)}</blockquote>;
    case "list": {
      const List = block.ordered ? "ol" : "ul";
      return (
        <List key={key} {...(typeof block.start === "number" && { start: block.start })}>
          {block.items.map((item, index) => (
            <li key={index}>{item.tokens.map(showBlock)}</li>
          ))}
        </List>
      );
    }
    case "code":
      return (
        <div key={key} class="code">
          <pre tabindex={0}>
            <code>{block.text}</code>
          </pre>
          <CopyButton text={() => block.text} />
        </div>
      );
    case "table":
      return (
        <div
          key={key}
          class="table"
          tabindex={0}
          role="region"
          aria-label={block.raw.split("\n")[0]}
        >
          <table>
            <thead>
              <tr>
                {block.header.map((cell, index) => (
                  <th key={index} scope="col">
                    {showAll(cell.tokens, cell.text)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, place) => (
                    <td key={place}>{showAll(cell.tokens, cell.text)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "hr":
      return <hr key={key} />;
    default:
      return showInline(token, key);
  }
}

function showInline(token: Token, key: number): ComponentChildren {
  const inline = token as MarkedToken;
  switch (inline.type) {
    case "strong":
      return <strong key={key}>{showAll(inline.tokens, inline.text)}</strong>;
    case "em":
      return <em key={key}>{showAll(inline.tokens, inline.text)}</em>;
    case "del":
      return <del key={key}>{showAll(inline.tokens, inline.text)}</del>;
    case "codespan":
      return <code key={key}>{inline.text}</code>;
    case "br":
      return <br key={key} />;
    case "link":
      if (!SAFE_LINK.test(inline.href)) return inline.raw;
      return (
        <a key={key} href={inline.href} target="_blank" rel="noopener noreferrer">
          {showAll(inline.tokens, inline.text)}
        </a>
      );
    case "text":
      return "tokens" in inline && inline.tokens
        ? showAll(inline.tokens, inline.text)
        : inline.text;
    case "escape":
      return inline.text;
    default:
      // HTML, images of other hosts, and what is not known: as it was written.
      return token.raw;
  }
}
