// Starts `tilewright lsp` and connects it with the editor. Everything that is shown comes from there.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

/** The languages whose files have layouts, besides tile programs. */
const LANGUAGES = ["tilewright", "python", "c", "cpp", "cuda-cpp", "rust", "mlir", "ptx", "log", "plaintext"];

let client;

async function activate() {
  const settings = vscode.workspace.getConfiguration("tilewright");
  const server = { command: settings.get("command") || "tilewright", args: ["lsp"] };
  client = new LanguageClient("tilewright", "Tilewright", server, {
    documentSelector: LANGUAGES.map((language) => ({ language })),
    initializationOptions: { machine: settings.get("machine") || "" },
  });
  try {
    await client.start();
  } catch (error) {
    const help = "Install it with `cargo install --path crates/cli`, or set `tilewright.command`.";
    vscode.window.showErrorMessage(`Tilewright: \`${server.command} lsp\` does not start: ${error}. ${help}`);
  }
}

async function deactivate() {
  await client?.stop();
}

module.exports = { activate, deactivate };
