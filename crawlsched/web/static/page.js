// crawlsched's page: what is shown is fetched again while somebody looks at it, and charts say what is under the pointer.
"use strict";

function readable(chart) {
  const points = JSON.parse(chart.dataset.points), names = JSON.parse(chart.dataset.names);
  const cursor = chart.querySelector(".cursor"), output = chart.parentElement.querySelector("output");
  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect(), at = (event.clientX - box.left) / box.width;
    let nearest = points[0];
    for (const point of points) if (Math.abs(point[0] - at) < Math.abs(nearest[0] - at)) nearest = point;
    const x = `${100 * nearest[0]}%`;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.style.visibility = "visible";
    output.hidden = false;
    output.classList.toggle("left", nearest[0] > 0.5);
    output.textContent = [nearest[1], ...names.map((name, n) => `${name} ${nearest[n + 2]}`)].join("\n");
  });
  chart.addEventListener("pointerleave", () => {
    cursor.style.visibility = "hidden";
    output.hidden = true;
  });
}

function begin() {
  document.querySelectorAll(".chart").forEach(readable);
}

async function again() {
  const wait = Number(document.body.dataset.refresh || 0);
  if (!wait) return;
  await new Promise((go) => setTimeout(go, 1000 * wait));
  const isBusy = document.hidden || document.querySelector("input:focus, .chart:hover, .scroll:hover, .diff:hover");
  if (!isBusy) {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const main = fresh.querySelector("main");
      if (answer.ok && main) {
        document.querySelector("main").replaceWith(main);
        document.body.dataset.refresh = fresh.body.dataset.refresh || "";
        begin();
      }
    } catch {
      // The crawl may be starting anew; what is shown stays until it answers.
    }
  }
  again();
}

begin();
again();
