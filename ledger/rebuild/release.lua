-- Ends a rebuild that has changed nothing.
-- KEYS: meta, lease. ARGV: value of the lease, the meta as it was, or nothing: there was none.
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  local flags, life = ARGV[2]:byte(2), redis.call('GETRANGE', KEYS[1], 1, 1):byte()
  if life then -- may have moved
    redis.call('SETRANGE', KEYS[1], 1, string.char(flags - flags % 16 + life % 16))
  end
end
return redis.call('DEL', KEYS[2])
