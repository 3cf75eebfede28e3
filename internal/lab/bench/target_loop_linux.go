package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawLoop answers on connections that it takes from Go's own poller.
type rawLoop struct {
	epoll int
	reply []byte
	buf   []byte
}

func newRawLoop(reply []byte) (*rawLoop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return &rawLoop{epoll: epoll, reply: reply, buf: make([]byte, 8<<10)}, err
}

func (l *rawLoop) close() { _ = unix.Close(l.epoll) }

// add takes a connection over. It may be called while the loop runs.
func (l *rawLoop) add(conn net.Conn) error {
	defer conn.Close() // what File returns is another descriptor of the same socket
	c, ok := conn.(interface{ File() (*os.File, error) })
	if !ok {
		return fmt.Errorf("%T is no socket", conn)
	}
	file, err := c.File()
	if err != nil {
		return err
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.SetNonblock(fd, true),
		unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(fd)}))
}

// run answers until ctx is done.
func (l *rawLoop) run(ctx context.Context) error {
	events := make([]unix.EpollEvent, 128)
	for ctx.Err() == nil {
		n, err := unix.EpollWait(l.epoll, events, int(loopWait.Milliseconds()))
		if err != nil && err != unix.EINTR {
			return err
		}
		for _, event := range events[:max(n, 0)] {
			l.answer(uintptr(event.Fd))
		}
	}
	return nil
}

// answer reads a request and writes the reply, both whole: requests are small, and
// the client has read what came before.
func (l *rawLoop) answer(fd uintptr) {
	n, errno := rawCall(unix.SYS_RECVFROM, fd, l.buf)
	if errno == 0 && n > 0 {
		_, errno = rawCall(unix.SYS_SENDTO, fd, l.reply)
	}
	if errno != unix.EAGAIN && (errno != 0 || n == 0) {
		_ = unix.Close(int(fd))
	}
}

// rawCall makes a system call that does not wait, without telling Go's scheduler.
func rawCall(trap, fd uintptr, p []byte) (uintptr, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return n, errno
}
