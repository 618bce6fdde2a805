/**
 * `Forebay-Position: <buffer>.<epoch>.<fsn>.<index>`: where an edge-acknowledged request lies.
 * `buffer` is `<region>:<partition>`, `epoch` an opaque token, `index` the request's place in the frame.
 */
export interface Position {
  readonly buffer: string;
  readonly epoch: string;
  readonly fsn: number;
  readonly index: number;
}

const shape = /^([A-Za-z0-9_-]{1,32}:\d{1,5})\.([0-9a-z]{1,32})\.(\d{1,15})\.(\d{1,6})$/;

export function formatPosition(p: Position): string {
  return `${p.buffer}.${p.epoch}.${p.fsn}.${p.index}`;
}

/** The position, or undefined when the text is not one. */
export function parsePosition(text: string): Position | undefined {
  const m = shape.exec(text);
  if (m?.[1] === undefined || m[2] === undefined) {
    return undefined;
  }
  return { buffer: m[1], epoch: m[2], fsn: Number(m[3]), index: Number(m[4]) };
}
