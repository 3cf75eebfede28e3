<?php
// phpredis against the listener: see TestClients. phpredis.php PORT
function want($got, $want) {
    if ($got !== $want) {
        fwrite(STDERR, var_export($got, true) . ', want ' . var_export($want, true) . "\n");
        exit(1);
    }
}

function connected() {
    global $argv;
    $r = new Redis();
    $r->connect('127.0.0.1', (int) $argv[1]);
    return $r;
}

$r = connected();
$other = connected();
$r->client('setname', 'shop');
$r->del('k', 'list');
want($r->zRevRange('open', 0, 0, true), ['m000000' => 1000.0]);
want($r->zScore('open', 'nobody'), false);
want($r->pipeline()->zCard('open')->incr('k')->zRevRank('open', 'm000001')->exec(), [10, 1, 1]);
want($r->multi()->incr('k')->zCard('open')->exec(), [2, 10]);
$r->watch('k');
$other->set('k', '5');
want($r->multi()->incr('k')->exec(), false);
want($r->eval("return ARGV[1] .. redis.call('ZCARD', KEYS[1])", ['hot', 'x'], 1), 'x10');
$other->rPush('list', 'a');
want($r->blPop('list', 5), ['list', 'a']);
echo "close\n"; // all connections
fgets(STDIN);
want(connected()->zCard('open'), 10);
echo "done\n";
