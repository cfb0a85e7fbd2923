/* remote_client.c - the program that mpirun takes for a remote shell. It lives as long as the command runs elsewhere,
 * and its end, also by a signal, is how the agent learns that mpirun is gone. */
#define _GNU_SOURCE
#include "dist/agent/remote.h"
#include "dist/agent/remote_frame.h"

#include "base/buf.h"
#include "base/file.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENT_FAILED = 255 }; /* as ssh */

static int client_failed(const char *what, int errno_value)
{
    dprintf(STDERR_FILENO, "trainyard: %s%s%s\n", what, errno_value ? ": " : "",
            errno_value ? strerror(errno_value) : "");
    return CLIENT_FAILED;
}

static int connect_to_agent(void)
{
    const char *path = getenv(TY_REMOTE_VARIABLE);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || strlen(path) >= sizeof address.sun_path) {
        errno = ENOENT;
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* "HOST\0word word ...": as ssh does, words are joined by blanks. */
static bool send_request(int fd, int argc, const char *const *argv)
{
    ty_buf b;
    ty_buf_init(&b, TY_REMOTE_FRAME_BYTES - sizeof(remote_head));
    ty_buf_add(&b, argv[0], strlen(argv[0]) + 1);
    for (int i = 1; i < argc; i++) {
        ty_buf_adds(&b, i > 1 ? " " : "");
        ty_buf_adds(&b, argv[i]);
    }
    if (b.failed)
        errno = E2BIG;
    bool sent = !b.failed && send(fd, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len;
    ty_buf_fini(&b);
    return sent;
}

/* Passes on what the command writes, until it has ended. */
static int relay(int fd)
{
    static char frame[TY_REMOTE_FRAME_BYTES];
    for (;;) {
        ssize_t n = recv(fd, frame, sizeof frame, 0);
        if (n < 0 && errno == EINTR)
            continue;
        remote_head head;
        if (n < (ssize_t)sizeof head)
            return client_failed("the agent has hung up", 0);
        memcpy(&head, frame, sizeof head);
        if (head.kind == REMOTE_END)
            return WIFEXITED(head.value) ? WEXITSTATUS(head.value) : 128 + WTERMSIG(head.value);
        ty_file_write_all(head.value == 2 ? STDERR_FILENO : STDOUT_FILENO, frame + sizeof head, (size_t)n - sizeof head,
                          "output", NULL);
        if (head.kind == REMOTE_REFUSED)
            return CLIENT_FAILED;
    }
}

int ty_remote_client(int argc, const char *const *argv)
{
    if (argc < 2)
        return client_failed("mpirun's remote shell: HOST COMMAND...", 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a killed mpirun takes us along, and we what runs elsewhere */
    int fd = connect_to_agent();
    if (fd < 0)
        return client_failed("no agent to ask for " TY_REMOTE_VARIABLE, errno);
    int rc = send_request(fd, argc, argv) ? relay(fd) : client_failed("cannot ask the agent", errno);
    close(fd);
    return rc;
}
