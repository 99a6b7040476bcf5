// Runs the checker in Pyodide, on one certificate; posts [verdict, text] and ["running", fraction].
import { loadPyodide } from "./pyodide/pyodide.mjs";

onmessage = async ({ data }) => {
  try {
    const python = await loadPyodide({ indexURL: new URL("pyodide/", location.href).href });
    const files = (await (await fetch("source/files.txt")).text()).trim().split("\n");
    for (const file of files) {
      const source = new Uint8Array(await (await fetch(`source/${file}`)).arrayBuffer());
      python.FS.mkdirTree(file.split("/").slice(0, -1).join("/"));
      python.FS.writeFile(file, source);
    }
    python.FS.writeFile("certificate.json", data);
    const checker = python.pyimport("simulations.positional.validated.checker");
    const progress = (fraction) => postMessage(["running", fraction]);
    postMessage(checker.verdict("certificate.json", progress, "python").toJs());
  } catch (error) {
    postMessage(["not checked", String(error)]);
  }
};
