-- Makes a board ready for apply.lua: its birth, the turn of its orders, missing
-- hashes of orders, and the adoption of a sorted set that was changed past the
-- scripts, and a longer life. The caller has compared its clock with the server's.
-- KEYS: board, its meta, the hashes of orders: n of set 0, n of set 1; then other hashes
-- of the board, and last that of hidden members, which apply.lua makes.
-- ARGV: now in ms, proposed run, keep as apply.lua takes it, order life
-- of a new board in seconds, members that are added up at once, run to be adopted
-- again ("" for none: then a board that is not there stays so), n, and of a new board
-- with a period its end and when it expires, in ms (0: no period), and the eras of all masters
-- if the board is durable, else "". Such a board has a run of its own in each era in which it changes. What the
-- field '' of the other hashes of a new board is. Whether the board may begin:
-- "" always, "there" if it has a meta, "none" only if that is of this era. Else it answers "b". Which of KEYS
-- is the hash of what members have beside their scores (0: none). Last, pairs: a member that
-- all boards of the class hide, and the serial of what hid it.
-- Returns "+", whether members were adopted (1 or 0), how many, and the fields of the
-- fullest hash; "w" and the run while a writer must adopt the board; "n" and "m" as
-- apply.lua does, and "s"; "i" and a member with an infinite score, which has commands wait until it has another;
-- "!" and a reason if the board is not to be born; "h" if who is hidden was deleted: it is done, but to be called again.
local call = redis.call
local layout, sets = '>BBI8I8I8I8I8I8I8I8I4I2', { [0] = {}, {} }
local n, others, hidden = tonumber(ARGV[7]), #KEYS - 1, KEYS[#KEYS]
for i = 3, 2 + 2 * n do
  table.insert(sets[i <= 2 + n and 0 or 1], KEYS[i])
end

local era = ''
if ARGV[10] ~= '' then
  era = string.match(call('INFO', 'replication'), 'master_replid:(' .. string.rep('%x', 16) .. ')')
  if not string.find(ARGV[10], era, 1, true) then
    return 's'
  end
end
local meta, card = call('GET', KEYS[2]), call('ZCARD', KEYS[1])
local now, again = tonumber(ARGV[1]), ARGV[6]
local flags, run, seq, sum, members, last, turn, life, buckets = 32, 0, 0, 0, card, now, -2, tonumber(ARGV[4]), n
local finish, expires, keep, before = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[3])
local version, rest = 1, '' -- of version 2: the era, and what stays in all of them
if meta then
  if META_UNREADABLE then
    return 'm'
  end
  version, flags, run, seq, sum, members, finish, expires, last, turn, life, buckets = struct.unpack(layout, meta)
  rest = meta:sub(73)
  if buckets ~= n then
    return 'n' .. string.format('%.0f', buckets)
  elseif flags % 32 >= 16 then
    return 'w' .. string.format('%.0f', run)
  end
elseif expires > 0 then
  if now >= expires then -- a repeat that was held up
    return '!ended'
  end
elseif keep == 0 and call('PTTL', KEYS[1]) >= 0 then
  finish = now + math.max(call('PTTL', KEYS[1]), 1) -- a sorted set that was there keeps its own expiry
  expires = finish
end
now, before = math.max(now, last), expires
local current = math.floor(now / (life * 1000 + 120000))
local turns = meta and current > turn -- a repeat may be what turns the orders: a change comes here again for the life
if finish == 0 and keep == 0 and not turns then
  expires = 0
elseif finish == 0 and keep > 0 and expires < now + keep and not turns then
  expires = now + keep + math.floor(keep / 8) + 1000 -- so that not each change extends it
end
if again ~= '' and again ~= string.format('%.0f', run) then
  return '+0 0 0'
end
local turned = era ~= '' and rest:sub(1, 16) ~= era and flags % 16 < 2
if ARGV[12] ~= '' and not meta or ARGV[12] == 'none' and turned then
  return 'b'
end

-- Which sets begin anew, which hashes are missing.
local fresh, fullest, missing = {}, 0, {}
for set = 0, 1 do
  local begins = turns and (set == current % 2 or current > turn + 1)
  for _, key in ipairs(sets[set]) do
    fullest = math.max(fullest, call('HLEN', key) - 1)
    if begins then
      table.insert(fresh, key)
    end
    if begins or not meta or call('HEXISTS', key, '') == 0 then
      table.insert(missing, key)
    end
  end
end
local unhidden = meta and flags >= 128 and call('HEXISTS', hidden, '') == 0 -- somebody has deleted the hash
for i = 14, (not meta or unhidden and flags % 16 < 2) and #ARGV or 0, 2 do -- of a new board: nobody sees it before; the result of a closed one stands
  if call('HSETNX', hidden, ARGV[i], ARGV[i + 1] .. ' ' .. (call('ZSCORE', KEYS[1], ARGV[i]) or '-')) == 1 then
    card = card - call('ZREM', KEYS[1], ARGV[i])
    if not meta then
      call('HSET', hidden, '', '')
      members = card
    end
  end
end
if not meta and call('HEXISTS', hidden, '') == 1 then
  flags = flags + 128
end
if unhidden then
  table.insert(missing, hidden)
end
for i = 3 + 2 * n, others do
  if not meta or call('HEXISTS', KEYS[i], '') == 0 then
    table.insert(missing, KEYS[i])
  end
end

local data = ARGV[13] ~= '0' and KEYS[tonumber(ARGV[13])]
local lost = data and meta and call('HEXISTS', data, '') == 0 -- and with it what the sum was made of
local adopt = flags % 64 >= 32 or card ~= members or again ~= '' or lost
if turned then
  version, rest, turned = 2, era .. (rest ~= '' and rest:sub(17) or string.rep('\0', 28)), meta
end
if adopt and card > 0 then -- no reader can be given an infinite score: those are the first or the last
  for place = -1, 0 do
    local row = call('ZRANGE', KEYS[1], place, place, 'WITHSCORES')
    if math.abs(tonumber(row[2])) == math.huge then
      if meta and flags % 64 < 32 then
        call('SETRANGE', KEYS[2], 1, string.char(flags + 32))
      end
      return 'i' .. row[1]
    end
  end
end
if adopt or turned then
  run = math.max(run + 1, tonumber(ARGV[2]))
end
if adopt then
  members, sum = card, 0
  flags = flags % 16 + math.floor(flags / 128) * 128 -- not primed (64) any more: who knows what is added up
  if card > tonumber(ARGV[5]) then
    flags = flags + 48
  else
    local rows, texts = call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'), {}
    local all = data and call('HGETALL', data) or {}
    for i = 1, #all, 2 do
      texts[all[i]] = all[i + 1] ~= '' and all[i] .. '\0' .. all[i + 1] or nil
    end
    for i = 1, #rows, 2 do
      local share = redis.sha1hex(struct.pack('>d', tonumber(rows[i + 1]) + 0) .. (texts[rows[i]] or rows[i])):sub(1, 12)
      sum = (sum + tonumber(share, 16)) % 281474976710656
    end
  end
end

-- Nothing below can fail.
call('SET', KEYS[2], struct.pack(layout, version, flags, run, seq, sum, members, finish, expires, now, math.max(turn, current), life, buckets) .. rest)
if #fresh > 0 then
  call('UNLINK', unpack(fresh))
end
for _, key in ipairs(missing) do
  call('HSET', key, '', '')
end
for i = 3 + 2 * n, not meta and others or 0 do
  call('HSET', KEYS[i], '', ARGV[11])
end
local due, all = string.format('%.0f', expires), not meta or expires ~= before
table.insert(missing, KEYS[2]) -- SET has taken its expiry
if adopt and card > 0 then
  table.insert(missing, KEYS[1])
end
for _, key in ipairs(all and KEYS or missing) do
  if expires > 0 then
    call('PEXPIREAT', key, due)
  elseif all then
    call('PERSIST', key)
  end
end
if unhidden then
  return 'h'
elseif flags % 32 >= 16 then
  return 'w' .. string.format('%.0f', run)
end
return string.format('+%d %.0f %.0f', (adopt and (meta or card > 0)) and 1 or 0, members, fullest)
