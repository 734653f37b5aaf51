-- What Neovim shows of a wrong tile program, of a right one, and of a layout in Python.
-- `scripts/editors` runs it and compares the lines.
local function wait(what, ready)
  if not vim.wait(20000, ready, 20) then
    print("no " .. what)
    vim.cmd("cquit")
  end
end

wait("diagnostics", function() return #vim.diagnostic.get(0) > 0 end)
for _, own in ipairs(vim.diagnostic.get(0)) do
  local place = string.format("%d:%d-%d:%d", own.lnum + 1, own.col + 1, own.end_lnum + 1, own.end_col + 1)
  print(string.format("diagnostic %s %s %s\n", place, own.code or "", own.message))
end

-- The answer of the server to a request about the place in this buffer.
local function ask(method, extra)
  local params = vim.tbl_extend("force", vim.lsp.util.make_position_params(0, "utf-16"), extra or {})
  for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, 20000) or {}) do
    if answer.err then print(method .. ": " .. vim.inspect(answer.err)) end
    return answer.result
  end
end

local function place(range)
  local first, last = range.start, range["end"]
  return string.format("%d:%d-%d:%d", first.line + 1, first.character + 1, last.line + 1, last.character + 1)
end

-- The cursor on the n-th time that a text stands in this buffer.
local function go(text, times)
  vim.fn.cursor(1, 1)
  for time = 1, times or 1 do
    vim.fn.search("\\V" .. text, time == 1 and "c" or "")
  end
end

vim.cmd("edit right.tile")
wait("client", function() return next(vim.lsp.buf_get_clients(0)) ~= nil end)
local whole = { start = { line = 0, character = 0 }, ["end"] = { line = 99, character = 0 } }
for _, hint in ipairs(ask("textDocument/inlayHint", { range = whole }) or {}) do
  local label = type(hint.label) == "string" and hint.label or hint.label[1].value
  print(string.format("hint %d:%d %s", hint.position.line + 1, hint.position.character + 1, label))
end
go("twice", 2)
local found = ask("textDocument/definition")
print("definition " .. place((found[1] or found).range))
print("hover " .. ask("textDocument/hover").contents.value:gsub("\n.*", ""))
local labels = {}
local items = ask("textDocument/completion")
for _, item in ipairs(items.items or items) do table.insert(labels, item.label) end
table.sort(labels)
print("completion " .. table.concat(labels, " "))
for _, edit in ipairs(ask("textDocument/formatting", { options = { tabSize = 4, insertSpaces = true } }) or {}) do
  print("edit " .. place(edit.range) .. " '" .. edit.newText .. "'")
end

vim.cmd("edit a.py")
wait("client", function() return next(vim.lsp.buf_get_clients(0)) ~= nil end)
vim.fn.cursor(2, 16)
local params = vim.lsp.util.make_position_params(0, "utf-16")
local answers = vim.lsp.buf_request_sync(0, "textDocument/hover", params, 20000)
for _, answer in pairs(answers or {}) do
  print(answer.result and answer.result.contents.value or vim.inspect(answer))
end
vim.cmd("qall!")
