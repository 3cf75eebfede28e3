-- KEYS: meta, lease. ARGV: value of the lease, ms that it lasts, 1 if the rebuild has made the meta.
-- Returns 1, or 0 if the lease is another's by now.
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return 0
end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
if ARGV[3] == '1' then
  redis.call('PEXPIRE', KEYS[1], ARGV[2] - 1000)
end
return 1
