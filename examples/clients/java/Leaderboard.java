import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * A recipe for apps in Java 17 or newer: it reads the page of a board from the sidecar, and from
 * Redis while the sidecar is away. Each line of its input is a read; a line with a state, such as
 * the writer answers, reads a page that has that write. With a member the page has its row,
 * neighbours and profiles, and a line such as +5 gives it points first.
 */
public class Leaderboard {
    static final int LIMIT = 50; // rows of a page

    record Entry(String member, double score) {}

    /** The head of a board. source: local, hot or redis; direct if the app itself asked Redis. */
    record Page(String source, List<Entry> entries, Me me, String state, String etag) {}

    /** The row of the member that the page is for; neighbours has it, too. */
    record Me(String rank, String nick, List<Entry> neighbours) {}

    interface Redis {
        List<Entry> top(String board) throws IOException;
    }

    /** Has the connections: make one for the whole process. Threads may share it. */
    static class Client {
        private final String sidecar;
        private final Redis redis;
        private final String me; // the member that pages are for, or ""
        private final String writer; // host:port of the writer, or ""
        private final String token;
        private final HttpClient http = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1) // the default asks for an upgrade to HTTP/2
            .connectTimeout(Duration.ofMillis(500))
            .build();

        Client(String sidecar, Redis redis, String me, String writer, String token) {
            this.sidecar = sidecar;
            this.redis = redis;
            this.me = me;
            this.writer = writer;
            this.token = token;
        }

        /**
         * Returns the page of the board. If that has not changed since known, an earlier page or null,
         * it returns known itself. With a state the page has that write.
         */
        Page top(String board, Page known, String state) throws IOException, InterruptedException {
            for (int i = 0; i < 2; i++) { // a connection that was kept may have died with the last process
                try {
                    return ask(board, known, state);
                } catch (IOException away) {
                    // once more, then Redis
                }
            }
            return new Page("direct", redis.top(board), null, "", "");
        }

        private Page ask(String board, Page known, String state) throws IOException, InterruptedException {
            var target = "http://" + sidecar + "/v1/boards/" + URLEncoder.encode(board, UTF_8) + "/top?limit=" + LIMIT;
            if (!me.isEmpty()) {
                target += "&around=4&profiles=1&me=" + URLEncoder.encode(me, UTF_8);
            }
            if (!state.isEmpty()) {
                target += "&wait_ms=200&min_state=" + URLEncoder.encode(state, UTF_8);
            }
            var request = HttpRequest.newBuilder(URI.create(target));
            if (known != null && !known.etag().isEmpty()) {
                request.header("If-None-Match", known.etag());
            }
            var answer = send(request.build(), 1);
            var headers = answer.headers();
            return switch (answer.statusCode()) {
                case 200 -> new Page(headers.firstValue("Rankcache-Source").orElse(""), entries(part(answer.body(), 0)), me(part(answer.body(), 1)),
                    headers.firstValue("Rankcache-State").orElse(""), headers.firstValue("ETag").orElse(""));
                case 304 -> known;
                case 503 -> throw new IOException(answer.body());
                default -> // 403 blocked, 412 write_lost: not for Redis
                    throw new IllegalStateException("read " + board + ": " + answer.statusCode() + ": " + answer.body());
            };
        }

        /** Adds to the score of me, and returns the board's state after it, for the next read. */
        String post(String board, String delta) throws IOException, InterruptedException {
            // In your app its JSON library makes this, and escapes what is in quotes.
            var command = "{\"order\":\"%s\",\"board\":\"%s\",\"member\":\"%s\",\"op\":\"incr\",\"delta\":%s,\"at\":%d}"
                .formatted(UUID.randomUUID(), board, me, delta, System.currentTimeMillis());
            var request = HttpRequest.newBuilder(URI.create("http://" + writer + "/v1/scores"))
                .header("Content-Type", "application/json").header("Authorization", "Bearer " + token)
                .POST(BodyPublishers.ofString(command)).build();
            for (boolean last = false;; last = true) { // the same order and at: it counts once
                try {
                    var answer = send(request, 6); // a writer waits up to 5 s for Redis
                    if (answer.statusCode() == 200) {
                        return answer.body().replaceFirst("(?s).*\"state\":\"([^\"]*)\".*", "$1");
                    }
                    if (answer.statusCode() != 503 || last) { // refused: so is a repeat
                        throw new IllegalStateException("post: " + answer.statusCode() + ": " + answer.body());
                    }
                } catch (IOException away) { // it may have been counted: post the same again later
                    if (last) {
                        throw away;
                    }
                }
            }
        }

        /** Waits some seconds for the whole answer. HttpRequest's own time-out is for its head alone. */
        private HttpResponse<String> send(HttpRequest request, int seconds) throws IOException, InterruptedException {
            var answer = http.sendAsync(request, BodyHandlers.ofString());
            try {
                return answer.get(seconds, TimeUnit.SECONDS);
            } catch (ExecutionException | TimeoutException away) {
                answer.cancel(true); // closes the connection
                throw new IOException(away);
            }
        }
    }

    private static final Pattern ME = Pattern.compile(
        "^\\{\"rank\":(\\d+),.*?\"profile\":(?:null|\\{.*?\"nick\":\"((?:[^\"\\\\]|\\\\.)*)\".*?\\}),\"neighbours\":\\[(.*)\\]");
    private static final Pattern ROW = Pattern.compile("\"member\":\"((?:[^\"\\\\]|\\\\.)*)\",\"score\":([^,}]+)");

    /** Returns what is before (0) or behind (1) the field me, "" without. */
    static String part(String json, int i) {
        var parts = json.split(",\"me\":", 2);
        return i < parts.length ? parts[i] : "";
    }

    /** Reads me, null if the member is not on the board or has no rank. */
    static Me me(String json) {
        var m = ME.matcher(json);
        return m.find() ? new Me(m.group(1), m.group(2), entries(m.group(3))) : null;
    }

    /** Reads the rows. The JDK has nothing for JSON: in your app its JSON library does this. */
    static List<Entry> entries(String json) {
        return ROW.matcher(json).results().map(m -> new Entry(m.group(1), Double.parseDouble(m.group(2)))).toList();
    }

    /**
     * Reads from Redis itself. In your app its Redis client does this, with a small pool. With integers
     * the fraction of a score is a tie-break, which the sidecar doesn't show.
     */
    static List<Entry> zrevrange(InetSocketAddress redis, String board, boolean integers) throws IOException {
        try (var conn = new Socket()) {
            conn.connect(redis, 1000);
            conn.setSoTimeout(1000);
            var command = new StringBuilder("*5\r\n");
            for (var word : List.of("ZREVRANGE", board, "0", "" + (LIMIT - 1), "WITHSCORES")) {
                command.append("$").append(word.getBytes(UTF_8).length).append("\r\n").append(word).append("\r\n");
            }
            conn.getOutputStream().write(command.toString().getBytes(UTF_8));
            var reply = new DataInputStream(new BufferedInputStream(conn.getInputStream()));
            var rows = new ArrayList<Entry>();
            for (int n = length(reply, '*'); n > 0; n -= 2) {
                var member = value(reply);
                var score = Double.parseDouble(value(reply));
                rows.add(new Entry(member, integers ? Math.floor(score) : score));
            }
            return rows;
        }
    }

    private static String value(DataInputStream reply) throws IOException {
        var value = reply.readNBytes(length(reply, '$'));
        reply.skipNBytes(2);
        return new String(value, UTF_8);
    }

    private static int length(DataInputStream reply, char kind) throws IOException {
        var line = new StringBuilder();
        for (int b = reply.readByte(); b != '\n'; b = reply.readByte()) {
            line.append((char) b);
        }
        if (line.charAt(0) != kind) {
            throw new IOException("Redis answers " + line);
        }
        return Integer.parseInt(line.substring(1).trim());
    }

    public static void main(String[] args) throws InterruptedException {
        if (args.length < 3 || args.length > 6) {
            System.err.println("usage: Leaderboard SIDECAR REDIS BOARD [integer|number [MEMBER [WRITER]]]");
            System.exit(2);
        }
        int colon = args[1].lastIndexOf(':');
        var redis = new InetSocketAddress(args[1].substring(0, colon), Integer.parseInt(args[1].substring(colon + 1)));
        var integers = args.length > 3 && args[3].equals("integer");
        var client = new Client(args[0], board -> zrevrange(redis, board, integers), args.length > 4 ? args[4] : "",
            args.length > 5 ? args[5] : "", System.getenv().getOrDefault("RANKCACHE_WRITE_TOKEN", ""));
        Page page = null;
        for (var lines = new Scanner(System.in); lines.hasNextLine();) {
            try {
                var known = page;
                var line = lines.nextLine().trim();
                var state = line.startsWith("+") ? client.post(args[2], line.substring(1)) : line;
                page = client.top(args[2], known, state);
                System.out.print((page == known ? "unchanged" : page.source()) + " " + page.state() + ":");
                page.entries().forEach(e -> System.out.print(" " + e.member() + "=" + e.score()));
                if (page.me() != null) {
                    System.out.print(" | rank " + page.me().rank() + ", " + page.me().neighbours().size() + " near, " + page.me().nick());
                }
                System.out.println();
            } catch (IOException | IllegalStateException err) {
                System.out.println("error: " + err.getMessage());
            }
        }
    }
}
