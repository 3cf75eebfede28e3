-- Moves a board's life forward, once its period has ended.
-- KEYS: its meta. ARGV: life, now in ms, master_replid of the server that has the board, if it is known.
-- Returns the life that it has now and the end of its period in ms; life -1 if there is
-- no meta, -2 if it can't be read. Of a durable board it returns the server's master_replid if that is another.
-- Layout: wire/meta.go.
local meta = redis.call('GET', KEYS[1])
if not meta then
  return { -1, 0 }
elseif META_UNREADABLE then
  return { -2, 0 }
end
local flags, want, finish = meta:byte(2), tonumber(ARGV[1]), (struct.unpack('>I8', meta, 35))
local life = flags % 16
if finish > 0 and finish <= tonumber(ARGV[2]) and life < want then
  if meta:byte() == 2 then
    local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
    if history ~= ARGV[3] then
      return history
    end
  end
  redis.call('SETRANGE', KEYS[1], 1, string.char(flags - life + want))
  life = want
end
return { life, finish }
