-- Has a board whose final is missing expire later.
-- KEYS: its meta, then its other keys. ARGV: when they are to expire, in ms.
-- Layout: wire/meta.go.
local meta = redis.call('GET', KEYS[1])
if not meta or META_UNREADABLE or (struct.unpack('>I8', meta, 43)) >= tonumber(ARGV[1]) then
  return 0
end
redis.call('SETRANGE', KEYS[1], 42, struct.pack('>I8', tonumber(ARGV[1])))
for _, key in ipairs(KEYS) do
  redis.call('PEXPIREAT', key, ARGV[1])
end
return 1
