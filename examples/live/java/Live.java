import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.Proxy;
import java.net.URL;
import java.net.URLEncoder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * A recipe for apps in Java 17 or newer: it keeps the page of a board by the sidecar's stream of
 * server-sent events, and prints it as it moves.
 */
public class Live {
    static final int SILENCE = 15_000; // ms; the sidecar sends an event every 5 s
    static final int LEAST_WAIT = 100;
    static final int MOST_WAIT = 1_000;

    record Entry(String member, double score) {}

    /** The head of a board. run: the board's history in Redis; seq: changes in it; "" and 0 if not known. */
    record Page(String id, String run, long seq, List<Entry> entries) {
        boolean olderThan(Page other) {
            return other != null && run.equals(other.run) && seq < other.seq;
        }
    }

    interface Listener {
        /**
         * Is told of each event. kind: page, diff, age, end, or away: there is no stream now. page: to
         * show; null before the first, and when the board is blocked or deleted.
         */
        void changed(String kind, Page page, String data);
    }

    /** Keeps a page. One thread runs it. */
    static class Follower {
        private final String url;
        private final Listener listener;
        private Page last; // the stream's page, to which the next diff applies
        private Page shown; // the same, or a newer one of another sidecar
        private int wait = LEAST_WAIT;

        Follower(String sidecar, String board, Listener listener) {
            this.url = "http://" + sidecar + "/v1/boards/" + URLEncoder.encode(board, UTF_8) + "/live?limit=50";
            this.listener = listener;
        }

        void run() throws InterruptedException {
            while (true) {
                try {
                    stream();
                } catch (IOException away) {
                    listener.changed("away", shown, away.getMessage());
                }
                // Jitter: all apps of a sidecar lose it at the same time.
                Thread.sleep(wait + ThreadLocalRandom.current().nextInt(wait));
                wait = Math.min(2 * wait, MOST_WAIT);
            }
        }

        private void stream() throws IOException {
            // java.net.http has no time-out for a body that takes for ever.
            var request = (HttpURLConnection) new URL(url).openConnection(Proxy.NO_PROXY);
            request.setConnectTimeout(SILENCE);
            request.setReadTimeout(SILENCE);
            if (last != null) {
                request.setRequestProperty("Last-Event-ID", last.id());
            }
            try {
                if (request.getResponseCode() != 200) {
                    if (request.getResponseCode() < 500) { // blocked or unknown
                        last = shown = null;
                    }
                    throw new IOException("status " + request.getResponseCode());
                }
                read(new BufferedReader(new InputStreamReader(request.getInputStream(), UTF_8)));
            } finally {
                request.disconnect();
            }
        }

        private void read(BufferedReader lines) throws IOException {
            String kind = "", data = "";
            for (var line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith("event: ")) {
                    kind = line.substring(7);
                    wait = LEAST_WAIT;
                } else if (line.startsWith("data: ")) {
                    data = line.substring(6);
                } else if (line.startsWith("retry: ")) {
                    wait = Math.max(LEAST_WAIT, Integer.parseInt(line.substring(7)));
                } else if (line.isEmpty()) { // the event is whole
                    take(kind, data);
                }
            }
            throw new IOException("the stream has ended");
        }

        private void take(String kind, String data) throws IOException {
            if (kind.equals("page")) {
                last = page(data, List.of());
            } else if (kind.equals("diff")) {
                if (last == null || !last.id().equals(value(data, "base"))) {
                    last = null; // the next request has no Last-Event-ID, and gets a page
                    throw new IOException("a diff of another page");
                }
                int length = Integer.parseInt(value(data, "len"));
                last = page(data, last.entries().subList(0, Math.min(length, last.entries().size())));
            } else if (kind.equals("end") && !value(data, "code").equals("draining")) { // blocked or deleted
                last = shown = null;
            }
            if (last == null || !last.olderThan(shown)) {
                shown = last;
            } else if (kind.equals("page") || kind.equals("diff")) {
                return; // another sidecar may be behind: its page is shown when it is as new
            }
            listener.changed(kind, shown, data);
        }
    }

    // The JDK has nothing for JSON: in your app its JSON library does what stands from here.
    private static final Pattern ROW = Pattern.compile("(?:\"at\":(\\d+),)?\"rank\":\\d+,\"member\":\"((?:[^\"\\\\]|\\\\.)*)\",\"score\":([^,}]+)");

    /** Returns the page of an event: the rows before, with those of the event written to their places. */
    static Page page(String json, List<Entry> before) {
        var entries = new ArrayList<>(before);
        ROW.matcher(json).results().forEach(row -> {
            var entry = new Entry(row.group(2), Double.parseDouble(row.group(3)));
            int at = row.group(1) == null ? entries.size() : Integer.parseInt(row.group(1));
            if (at == entries.size()) {
                entries.add(entry);
            } else {
                entries.set(at, entry);
            }
        });
        var seq = value(json, "seq");
        return new Page(value(json, "id"), value(json, "run"), seq.isEmpty() ? 0 : Long.parseLong(seq), List.copyOf(entries));
    }

    /** Returns a field; "" if it is null or not there. */
    static String value(String json, String field) {
        var found = Pattern.compile("\"" + field + "\":\"?([^\",}]*)").matcher(json);
        return found.find() && !found.group(1).equals("null") ? found.group(1) : "";
    }

    public static void main(String[] args) throws InterruptedException {
        if (args.length != 2) {
            System.err.println("usage: Live SIDECAR BOARD");
            System.exit(2);
        }
        new Follower(args[0], args[1], (kind, page, data) -> {
            if (kind.equals("page") || kind.equals("diff")) {
                System.out.print(kind + " " + page.seq() + ":");
                page.entries().forEach(e -> System.out.print(" " + e.member() + "=" + e.score()));
                System.out.println();
            } else if (!kind.equals("age")) {
                System.out.println(kind + ": " + data);
            }
        }).run();
    }
}
