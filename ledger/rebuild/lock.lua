-- Has writers wait for a rebuild: the board is marked as one that is adopted, and the lease
-- of the writer that would add it up is the rebuild's. A lease that a killed rebuild has
-- left is taken over.
-- KEYS: meta, lease. ARGV: id of the rebuild, proposed run, ms that the lease lasts, meta of
-- a board that is not there, ms that this one and its lease last.
-- Returns the lease, the meta as it was and now is, and the server's master_replid if the board is
-- durable; "h" while a writer has the lease, or "m" if the meta can't be read. A meta that was not there was empty.
local call = redis.call
local held, meta = call('GET', KEYS[2]), call('GET', KEYS[1])
local history = ''
if ARGV[4]:byte() == 2 or meta and meta:byte() == 2 then
  history = string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
end
if held and held:sub(1, 8) ~= 'rebuild:' then
  return 'h'
end
if not meta or held and held:sub(1, 12) == 'rebuild:new:' then
  local lease = 'rebuild:new:' .. ARGV[1]
  call('SET', KEYS[2], lease, 'PX', ARGV[5])
  call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5] - 1000) -- never without a lease
  return { lease, '', ARGV[4], history }
elseif META_UNREADABLE then
  return 'm'
end
local lease = 'rebuild:' .. ARGV[1]
local _, flags, run = struct.unpack('>BBI8', meta)
call('SET', KEYS[2], lease, 'PX', ARGV[3])
call('SETRANGE', KEYS[1], 1, struct.pack('>BI8', flags - flags % 64 + flags % 16 + 48, math.max(run + 1, tonumber(ARGV[2]))))
return { lease, meta, call('GET', KEYS[1]), history }
