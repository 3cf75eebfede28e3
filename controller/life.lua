-- Moves a board's life forward, once its period has ended.
-- KEYS: its meta. ARGV: life, now in ms, length of a meta.
-- Returns the life that it has now and the end of its period in ms; life -1 if there is
-- no meta, -2 if it can't be read. Layout: wire/meta.go.
local meta = redis.call('GET', KEYS[1])
if not meta then
  return { -1, 0 }
elseif #meta ~= tonumber(ARGV[3]) or meta:byte() ~= 1 then
  return { -2, 0 }
end
local flags, want, finish = meta:byte(2), tonumber(ARGV[1]), (struct.unpack('>I8', meta, 35))
local life = flags % 16
if finish > 0 and finish <= tonumber(ARGV[2]) and life < want then
  redis.call('SETRANGE', KEYS[1], 1, string.char(flags - life + want))
  life = want
end
return { life, finish }
