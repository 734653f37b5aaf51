-- What Neovim shows of a wrong tile program, and of a layout in Python. `scripts/editors` runs it.
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

vim.cmd("edit a.py")
wait("client", function() return next(vim.lsp.buf_get_clients(0)) ~= nil end)
vim.fn.cursor(2, 16)
local params = vim.lsp.util.make_position_params(0, "utf-16")
local answers = vim.lsp.buf_request_sync(0, "textDocument/hover", params, 20000)
for _, answer in pairs(answers or {}) do
  print(answer.result and answer.result.contents.value or vim.inspect(answer))
end
vim.cmd("qall!")
