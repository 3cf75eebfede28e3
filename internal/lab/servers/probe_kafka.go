package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// probeKafka asks the broker for metadata. A broker that accepts connections is not ready before the controller lets it serve: only then is it in its own list
// of brokers and can create topics. The cluster id, which the storage was formatted with, tells it from a stranger on the same port.
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

// metadata asks once. The client waits ten seconds for the first answer on a connection whatever the context says, hence the option.
func metadata(ctx context.Context, addr string) (*kmsg.MetadataResponse, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RequestRetries(0), kgo.RequestTimeoutOverhead(time.Second))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none; nil would ask for all
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
