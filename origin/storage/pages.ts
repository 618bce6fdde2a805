/** What is used of the WebAssembly API; Node's types do not name it. */
declare const WebAssembly: {
  readonly Memory: new (size: { initial: number; maximum: number }) => {
    readonly buffer: ArrayBuffer;
  };
};

const wasmPageBytes = 64 * 1024;

/**
 * Memory that begins at a page boundary, which O_DIRECT demands: a Buffer's or an ArrayBuffer's memory begins
 * wherever malloc says and is refused with EINVAL. The system hands out pages only when they are first touched.
 */
export function pageAlignedMemory(bytes: number): Uint8Array {
  const pages = Math.ceil(bytes / wasmPageBytes);
  const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages });
  return new Uint8Array(buffer, 0, bytes);
}
