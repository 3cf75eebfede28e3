package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// probeRedis asks the server for PING and for its process id. The error of a server that wants a password is an answer
// too.
func probeRedis(network, addr string) func(context.Context, int) error {
	return func(ctx context.Context, pid int) error {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		defer stop()
		if _, err := io.WriteString(conn, "PING\r\nINFO server\r\n"); err != nil {
			return err
		}
		return checkRedis(bufio.NewReader(conn), pid)
	}
}

func checkRedis(r *bufio.Reader, pid int) error {
	pong, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	if strings.HasPrefix(pong, "-NOAUTH") {
		return nil
	}
	if pong != "+PONG\r\n" {
		return errors.New(strings.TrimSpace(pong))
	}
	info, err := readBulk(r)
	if err != nil {
		return err
	}
	if !strings.Contains(string(info), fmt.Sprintf("process_id:%d\r\n", pid)) {
		return fmt.Errorf("another server answers here, not the one with pid %d", pid)
	}
	return nil
}

// readBulk reads a bulk reply. A sentinel does not know QUIT, so the end of the connection is not the end of the reply.
func readBulk(r *bufio.Reader) ([]byte, error) {
	var size int
	if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
		return nil, fmt.Errorf("no bulk reply: %w", err)
	}
	text := make([]byte, min(max(size, 0), 1<<20))
	_, err := io.ReadFull(r, text)
	return text, err
}

// probeKafka asks the broker for metadata. A broker that accepts connections is not ready before the controller lets it
// serve: only then is it in its own list of brokers and can create topics. The cluster id, which the storage was
// formatted with, tells it from a stranger on the same port.
func probeKafka(addr, metaFile string) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		md, err := metadata(ctx, addr)
		if err != nil {
			return err
		}
		if len(md.Brokers) == 0 || md.ControllerID < 0 {
			return errors.New("the broker answers but does not serve yet")
		}
		return checkCluster(md.ClusterID, metaFile)
	}
}

// metadata asks once, for the topics named. The client waits ten seconds for the first answer on a connection whatever
// the context's deadline, hence the option.
func metadata(ctx context.Context, addr string, topics ...string) (*kmsg.MetadataResponse, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RequestRetries(0), kgo.RequestTimeoutOverhead(time.Second))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none; nil would ask for all
	for _, topic := range topics {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = &topic
		req.Topics = append(req.Topics, rt)
	}
	return req.RequestWith(ctx, cl)
}

func checkCluster(id *string, metaFile string) error {
	meta, err := os.ReadFile(metaFile)
	if err != nil {
		return err
	}
	if id == nil || !strings.Contains(string(meta), "\ncluster.id="+*id+"\n") {
		return fmt.Errorf("another broker answers here, not the one with the storage %s", metaFile)
	}
	return nil
}
