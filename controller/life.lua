-- Moves a board's life forward, once its period has ended: not to final before it is closed.
-- KEYS: its meta. ARGV: life (0 only looks), now in ms, the eras of masters in which a durable board may be
-- looked at, else "".
-- Returns the life that it had and the end of its period in ms; life -1 if there is
-- no meta, -2 if it can't be read; and the era of its server. Or "s" if that is none of the eras.
-- Layout: wire/meta.go.
local era = ''
if ARGV[3] ~= '' then
  era = string.match(redis.call('INFO', 'replication'), 'master_replid:(' .. string.rep('%x', 16) .. ')')
  if not string.find(ARGV[3], era, 1, true) then
    return 's'
  end
end
local meta = redis.call('GET', KEYS[1])
if not meta then
  return { -1, 0, era }
elseif META_UNREADABLE then
  return { -2, 0, era }
end
local flags, want, finish = meta:byte(2), tonumber(ARGV[1]), (struct.unpack('>I8', meta, 35))
local life = flags % 16
if finish > 0 and finish <= tonumber(ARGV[2]) and life < want and (want < 3 or life == 2) then
  redis.call('SETRANGE', KEYS[1], 1, string.char(flags - life + want))
end
return { life, finish, era }
