-- Runs the command of a client on a followed board, and adds up and logs what it changes, as the writer's apply.lua does.
-- KEYS: board, its meta, how far it is added up. ARGV: the board's id; 3 if the client speaks RESP3; where the first of the command's members stands
-- here, and how far apart they are (0: the command is about the whole key; -1: it names its members by rank); about how many entries the log keeps; and the command, which
-- has the board's key.
-- Returns Redis's reply to the command. Where the meta can't be read or written, or the board is closed, it is run as it is.
-- A board without a sum is added up in its order, some members with each command, while it goes on to be written: with a
-- pause a writer adopts it. KEYS[3] has its seq and number of members, how many of the first are added up, and their sum; for a second after its end its run.
local call, pcall, pack, sub, sha1hex = redis.call, redis.pcall, struct.pack, string.sub, redis.sha1hex
local board, key, first, step = KEYS[1], KEYS[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local meta, card = pcall('GET', key), pcall('ZCARD', board)
local open = type(meta) == 'string' and not META_UNREADABLE and meta:byte(2) % 16 < 2
local counts = (open or meta == false) and type(card) == 'number' and type(pcall('SETRANGE', key, 0, '')) == 'number'
local flags, run, seq, sum, members = card == 0 and 0 or 32, 0, 0, 0, card
if open then
  flags, run, seq, sum, members = select(2, struct.unpack('>BBI8I8I8I8', meta))
end
local unknown = not counts or flags % 64 >= 32 or members ~= card
local args, last = ARGV, #ARGV
if counts and step < 0 then -- ZREMRANGEBYRANK
  local from, to = tonumber(ARGV[8]) or 0, tonumber(ARGV[9]) or 0
  from, to = from < 0 and math.max(card + from, 0) or from, math.min(to < 0 and card + to or to, card - 1)
  if to - from < 64 then
    args, first, step = pcall('ZRANGE', board, ARGV[8], ARGV[9]), 1, 1
    last = #args
  else
    unknown, step = true, 0
  end
end
local adds, begun, before, named, places = unknown and counts and step > 0, seq, {}, {}, {}
if counts and step > 0 then
  for i = first, last, step do
    local member = args[i]
    if before[member] == nil then
      before[member] = call('ZSCORE', board, member)
      places[member] = adds and call('ZRANK', board, member)
      named[#named + 1] = member
    end
  end
end

if ARGV[2] == '3' then
  redis.setresp(3)
end
local reply = pcall(unpack(ARGV, 6))
if ARGV[2] == '3' then
  redis.setresp(2)
end
if type(reply) == 'table' and reply.err then
  return reply
end

local clock = call('TIME')
local now, log = clock[1] * 1000 + math.floor(clock[2] / 1000), ''
local fresh = now * 1024 + math.floor(clock[2] % 1000 * 1.024) -- a run higher than all earlier ones, and below 2^53
if not meta then
  local ended = call('GET', KEYS[3]) -- see below
  run = math.max(fresh, ended and #ended == 8 and struct.unpack('>I8', ended) + 1 or 0)
end
for _, member in ipairs(adds and {} or named) do
  local old, new = before[member], call('ZSCORE', board, member)
  if old ~= new then
    seq = seq + 1
    if old then
      members = members - 1
      sum = sum - tonumber(sub(sha1hex(pack('>d', tonumber(old) + 0) .. member), 1, 12), 16)
    end
    local record, score = '\3\0\0\0\0\0\0', 0 -- the mark of a delete; 2 is that of a set
    if new then
      members, record, score = members + 1, '\2\0\0\0\0\0\0', tonumber(new) + 0 -- -0 becomes 0
      sum = sum + tonumber(sub(sha1hex(pack('>d', score) .. member), 1, 12), 16)
      unknown = unknown or math.abs(score) == math.huge -- which no reader can be given
    end
    sum = sum % 281474976710656
    record = pack('>c7dI7I6I6I4I6', record, score, run, seq, sum, members, now)
    log = log .. pack('>I2c0I2c0', #member, member, #record, record)
  end
end
if unknown then
  flags = flags % 16 + math.floor(flags / 128) * 128 + 32 -- nor is it adopted now, or primed
end
if not counts then
  if open then -- no memory for more: the meta takes it behind a write
    pcall('SETRANGE', key, 1, string.char(flags))
  end
  return reply
end

local added
if adds then
  local saved, upto, total = call('GET', KEYS[3]), 0, 0
  if saved and meta then
    local at, of, n, so = struct.unpack('>I8I8I8I8', saved)
    if at == begun and of == card then
      upto, total = n, so
    end
  end
  local function add(score, member, sign)
    total = (total + sign * tonumber(sub(sha1hex(pack('>d', tonumber(score) + 0) .. member), 1, 12), 16)) % 281474976710656
  end
  local rest = upto -- those that the command does not name
  for _, member in ipairs(named) do
    if places[member] and places[member] < upto then
      rest = rest - 1
      add(before[member], member, -1)
    end
    places[member] = call('ZRANK', board, member) or nil
  end
  upto = rest
  for member, place in pairs(places) do
    local others = place
    for _, other in pairs(places) do
      others = others - (other < place and 1 or 0)
    end
    if others < rest then
      upto = upto + 1
      add(call('ZSCORE', board, member), member, 1)
    end
  end
  local rows = call('ZRANGE', board, upto, upto + 499, 'WITHSCORES')
  for i = 1, #rows, 2 do
    if math.abs(tonumber(rows[i + 1])) == math.huge then
      break
    end
    upto = upto + 1
    add(rows[i + 1], rows[i], 1)
  end
  members = call('ZCARD', board)
  added = upto == members
  if added then
    flags, run, sum = flags - 32, math.max(run + 1, fresh), total
    call('DEL', KEYS[3])
  else
    call('SET', KEYS[3], pack('>I8I8I8I8', begun, members, upto, total), 'PX', 5000)
  end
end

local left = (not meta or step == 0 or members == 0) and call('PTTL', board)
if not meta and left ~= -2 then -- its birth, as prepare.lua has it, with the writer's defaults
  local finish, life = left >= 0 and now + left or 0, 3600
  call('SETRANGE', key, 0, pack('>BBI8I8I8I8I8I8I8I8I4I2', 1, flags, run, seq, sum, members, finish, finish, now, math.floor(now / (life * 1000 + 120000)), life, 4))
  if finish > 0 then
    call('PEXPIREAT', key, string.format('%.0f', finish))
  end
elseif meta and added then
  call('SETRANGE', key, 1, pack('>BI8I8I8I8', flags, run, seq, sum, members))
elseif meta and unknown then
  call('SETRANGE', key, 1, string.char(flags))
elseif seq > begun then
  call('SETRANGE', key, 10, pack('>I8I8I8', seq, sum, members))
end
if seq > begun and not unknown then
  pcall('XADD', 'rankcache:log', 'MAXLEN', '~', ARGV[5], '*', 'b', ARGV[1], 'c', '\1\0' .. log)
end
if meta and left then -- Redis has a key's expiry go with its last member
  if left == -2 and step == 0 and card > 0 then
    call('DEL', key)
    call('SET', KEYS[3], pack('>I8', run), 'PX', 1000) -- a transaction is of one moment since Redis 7.2: its next life is of a later run
  elseif left >= 0 then
    call('SETRANGE', key, 34, pack('>I8I8', now + left, now + left))
    call('PEXPIREAT', key, string.format('%.0f', now + left))
  else
    call('SETRANGE', key, 34, pack('>I8I8', 0, 0))
    call('PERSIST', key)
  end
end
return reply
