import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * A recipe for apps in Java 17 or newer: it reads the page of a board from the sidecar, and from
 * Redis while the sidecar is away. Each line of its input is a read; a line with a state, such as
 * the writer answers, reads a page that has that write.
 */
public class Leaderboard {
    static final int LIMIT = 50; // rows of a page

    record Entry(String member, double score) {}

    /** The head of a board. source: local, hot or redis; direct if the app itself asked Redis. */
    record Page(String source, List<Entry> entries, String state, String etag) {}

    interface Redis {
        List<Entry> top(String board) throws IOException;
    }

    /** Has the connections: make one for the whole process. Threads may share it. */
    static class Client {
        private final String sidecar;
        private final Redis redis;
        private final HttpClient http = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1) // the default asks for an upgrade to HTTP/2
            .connectTimeout(Duration.ofMillis(500))
            .build();

        Client(String sidecar, Redis redis) {
            this.sidecar = sidecar;
            this.redis = redis;
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
            return new Page("direct", redis.top(board), "", "");
        }

        private Page ask(String board, Page known, String state) throws IOException, InterruptedException {
            var target = "http://" + sidecar + "/v1/boards/" + URLEncoder.encode(board, UTF_8) + "/top?limit=" + LIMIT;
            if (!state.isEmpty()) {
                target += "&wait_ms=200&min_state=" + URLEncoder.encode(state, UTF_8);
            }
            var request = HttpRequest.newBuilder(URI.create(target));
            if (known != null && !known.etag().isEmpty()) {
                request.header("If-None-Match", known.etag());
            }
            var answer = within(http.sendAsync(request.build(), BodyHandlers.ofString()));
            var headers = answer.headers();
            return switch (answer.statusCode()) {
                case 200 -> new Page(headers.firstValue("Rankcache-Source").orElse(""), entries(answer.body()),
                    headers.firstValue("Rankcache-State").orElse(""), headers.firstValue("ETag").orElse(""));
                case 304 -> known;
                case 503 -> throw new IOException(answer.body());
                default -> // 403 blocked, 412 write_lost: not for Redis
                    throw new IllegalStateException("read " + board + ": " + answer.statusCode() + ": " + answer.body());
            };
        }

        /** Waits 1 s for the whole answer. HttpRequest's own time-out is for its head alone. */
        private static <T> T within(CompletableFuture<T> answer) throws IOException, InterruptedException {
            try {
                return answer.get(1, TimeUnit.SECONDS);
            } catch (ExecutionException | TimeoutException away) {
                answer.cancel(true); // closes the connection
                throw new IOException(away);
            }
        }
    }

    private static final Pattern ROW = Pattern.compile("\"member\":\"((?:[^\"\\\\]|\\\\.)*)\",\"score\":([^,}]+)");

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
        if (args.length < 3 || args.length > 4) {
            System.err.println("usage: Leaderboard SIDECAR REDIS BOARD [integer]");
            System.exit(2);
        }
        int colon = args[1].lastIndexOf(':');
        var redis = new InetSocketAddress(args[1].substring(0, colon), Integer.parseInt(args[1].substring(colon + 1)));
        var client = new Client(args[0], board -> zrevrange(redis, board, args.length == 4));
        Page page = null;
        for (var lines = new Scanner(System.in); lines.hasNextLine();) {
            try {
                var known = page;
                page = client.top(args[2], known, lines.nextLine().trim());
                System.out.print((page == known ? "unchanged" : page.source()) + " " + page.state() + ":");
                page.entries().forEach(e -> System.out.print(" " + e.member() + "=" + e.score()));
                System.out.println();
            } catch (IOException | IllegalStateException err) {
                System.out.println("error: " + err.getMessage());
            }
        }
    }
}
