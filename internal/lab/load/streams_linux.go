package load

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// streamsWait is how long Read waits for data before it looks whether it is stopped, in
// milliseconds.
const streamsWait = 50

// Streams are connections to a Unix socket, each of which has sent one request and is sent
// events without end.
type Streams struct {
	epoll   int
	fds     []int
	stopped atomic.Bool
}

// OpenStreams connects to the socket once for each request and sends it. The caller calls Read
// and Stop.
func OpenStreams(socket string, requests [][]byte) (*Streams, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	s := &Streams{epoll: epoll}
	for i, request := range requests {
		if err := s.open(socket, i, request); err != nil {
			s.close()
			return nil, fmt.Errorf("stream %d of %d: %w", i, len(requests), err)
		}
	}
	return s, nil
}

func (s *Streams) open(socket string, i int, request []byte) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	s.fds = append(s.fds, fd)
	if err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err == nil {
		_, err = unix.Write(fd, request)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err == nil {
		err = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}) // #nosec G115 -- some thousands
	}
	return err
}

// Len returns how many streams there are.
func (s *Streams) Len() int { return len(s.fds) }

// Read calls got with the index of a stream and what has come of it, until Stop is called; it
// closes the streams then. The error is that one of them has ended.
func (s *Streams) Read(got func(stream int, data []byte)) error {
	defer s.close()
	events, buffer := make([]unix.EpollEvent, 512), make([]byte, 64<<10)
	for !s.stopped.Load() {
		n, err := unix.EpollWait(s.epoll, events, streamsWait)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, ev := range events[:max(n, 0)] {
			n, err := unix.Read(s.fds[ev.Fd], buffer)
			switch {
			case n > 0:
				got(int(ev.Fd), buffer[:n])
			case n == 0 && err == nil:
				return io.ErrUnexpectedEOF
			case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
				return err
			}
		}
	}
	return nil
}

// Stop ends Read.
func (s *Streams) Stop() { s.stopped.Store(true) }

func (s *Streams) close() {
	for _, fd := range s.fds {
		unix.Close(fd)
	}
	unix.Close(s.epoll)
}
