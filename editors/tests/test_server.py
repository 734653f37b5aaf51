"""The language server by a client with the types of the protocol."""

from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

URI = "file:///softmax.tile"
PROGRAM = Path(__file__).parents[2] / "crates/tile/programs/softmax.tile"


@pytest_lsp.fixture(config=ClientServerConfig(server_command=["tilewright", "lsp"]))
async def client(lsp_client: LanguageClient):
    capabilities = client_capabilities("visual-studio-code")
    await lsp_client.initialize_session(types.InitializeParams(capabilities=capabilities))
    yield
    await lsp_client.shutdown_session()


def opened(client: LanguageClient, uri: str, text: str) -> types.TextDocumentIdentifier:
    document = types.TextDocumentItem(uri=uri, language_id="tilewright", version=1, text=text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(document))
    return types.TextDocumentIdentifier(uri)


@pytest.mark.asyncio
async def test_layouts_stand_beside_values(client: LanguageClient):
    document = opened(client, URI, PROGRAM.read_text())
    whole = types.Range(types.Position(0, 0), types.Position(99, 0))
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(document, whole))
    assert hints and all("):(" in str(hint.label) for hint in hints)


@pytest.mark.asyncio
async def test_problems_completion_and_formatting(client: LanguageClient):
    text = PROGRAM.read_text()
    document = opened(client, URI, text.replace("exp(", "exq(", 1))
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    problem = client.diagnostics[URI][0]
    assert problem.code == "E1203" and problem.range.end.character == problem.range.start.character + 3
    document = opened(client, "file:///neat.tile", text)
    lines = text.splitlines()
    last = max(number for number, line in enumerate(lines) if "store(" in line)
    items = await client.text_document_completion_async(types.CompletionParams(document, types.Position(last, 4)))
    assert {"store", "exp", "x", "y"} <= {item.label for item in items}
    options = types.FormattingOptions(tab_size=4, insert_spaces=True)
    edits = await client.text_document_formatting_async(types.DocumentFormattingParams(document, options))
    assert list(edits) == []


@pytest.mark.asyncio
async def test_hover_in_python(client: LanguageClient):
    document = types.TextDocumentItem("file:///a.py", "python", 1, "a = make_layout((4, 8), stride=(8, 1))\n")
    client.text_document_did_open(types.DidOpenTextDocumentParams(document))
    place = types.TextDocumentPositionParams(types.TextDocumentIdentifier("file:///a.py"), types.Position(0, 8))
    hover = await client.text_document_hover_async(types.HoverParams(place.text_document, place.position))
    assert "size 32" in hover.contents.value


@pytest.mark.asyncio
async def test_definition_references_and_hover_of_a_name(client: LanguageClient):
    uri = "file:///named.tile"
    text = "tile t {\n    input x: f32 (8,8):(8,1)\n    output y: f32 (8,8):(8,1)\n    grid 1\n"
    text += "    a = load(x, (8,8), (0,0))\n    store(y, (0,0), a + a)\n}\n"
    document = opened(client, uri, text)
    use = types.Position(5, text.splitlines()[5].index("a +"))
    found = await client.text_document_definition_async(types.DefinitionParams(document, use))
    found = found[0] if isinstance(found, (list, tuple)) else found
    assert (found.range.start, found.range.end) == (types.Position(4, 4), types.Position(4, 5))
    context = types.ReferenceContext(include_declaration=True)
    uses = await client.text_document_references_async(types.ReferenceParams(context, document, use))
    assert len(uses) == 3
    hover = await client.text_document_hover_async(types.HoverParams(document, use))
    assert "8,8" in hover.contents.value


@pytest.mark.asyncio
async def test_a_code_action_opens_the_playground(client: LanguageClient):
    document = types.TextDocumentItem("file:///b.py", "python", 1, "a = Layout(\n    (4, 8),  # rows\n    stride=(8, 1),\n)\n")
    client.text_document_did_open(types.DidOpenTextDocumentParams(document))
    at = types.Position(2, 6)
    hover = await client.text_document_hover_async(types.HoverParams(types.TextDocumentIdentifier(document.uri), at))
    assert "size 32" in hover.contents.value
    params = types.CodeActionParams(
        types.TextDocumentIdentifier(document.uri), types.Range(at, at), types.CodeActionContext(diagnostics=[])
    )
    actions = await client.text_document_code_action_async(params)
    assert any("playground" in action.title for action in actions)
