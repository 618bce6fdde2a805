/** A page of some product: sends its events through the edge, follows them live. Runs as it stands, no bundler. */
const query = new URLSearchParams(location.search);
const edge = query.get("edge");
const stream = query.get("stream");
const visit = query.get("visit");
const key = query.get("key");

const ingest = new URL(`/v1/ingest/${stream}`, edge);
if (key !== null) {
  ingest.searchParams.set("key", key);
}

const byId = (id) => document.getElementById(id);
const bump = (id, n) => {
  byId(id).textContent = String(Number(byId(id).textContent) + n);
};
const show = (listId, text) => {
  const item = document.createElement("li");
  item.textContent = text;
  byId(listId).append(item);
};

let n = 0;
const nextEvent = (via) => ({ visit, n: n++, via, at: Math.round(performance.now()) });

async function sendByFetch() {
  const event = nextEvent("fetch");
  const answer = await fetch(ingest, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify([event]),
  });
  const body = await answer.json();
  bump(answer.status === 202 ? "acked" : "refused", 1);
  show("sent", `${event.via} ${event.n} → ${answer.status} ${body.position ?? body.code}`);
}

function sendByBeacon(via) {
  const event = nextEvent(via);
  const queued = navigator.sendBeacon(ingest, JSON.stringify(event));
  show("sent", `${event.via} ${event.n} → ${queued ? "queued by the browser" : "not queued"}`);
}

/** An EventSource repeats its first URL when it reconnects, so each connection is opened anew at the last offset. */
function follow(offset) {
  let next = offset;
  const source = new EventSource(new URL(`/v1/stream/${stream}?live=sse&offset=${next}`, edge));
  source.addEventListener("open", () => {
    byId("state").textContent = "connected";
  });
  source.addEventListener("data", (message) => {
    const records = JSON.parse(message.data);
    bump("count", records.length);
    for (const record of records) {
      show("live", `${record.visit} #${record.n} by ${record.via}`);
    }
  });
  source.addEventListener("control", (message) => {
    next = JSON.parse(message.data).streamNextOffset;
  });
  source.addEventListener("error", () => {
    source.close();
    byId("state").textContent = "reconnecting";
    setTimeout(() => follow(next), 200);
  });
}

byId("fetch").addEventListener("click", sendByFetch);
byId("beacon").addEventListener("click", () => sendByBeacon("beacon"));
addEventListener("pagehide", () => sendByBeacon("unload"));
follow("-1");
