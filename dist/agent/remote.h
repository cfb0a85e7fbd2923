/* remote.h - the real mpirun without ssh: what it would start by a remote shell is started by our agents.
 *
 * For user programs with mpirun options of their own. mpirun runs on the leader; for each other host it calls the
 * program that its parameter plm_rsh_agent names, with the host and the words of a command: the client below. The
 * client asks the leader's agent, that one the agent of the host over the link of agents, and there the command runs:
 *
 *     mpirun -> client -> (Unix socket) leader's agent -> (link) host's agent -> orted -> the user's ranks
 *
 * This is the one place where a command travels, so it is the narrowest: nothing but `orted` is started, found in the
 * host's own PATH, only if the leader asks; the words are taken apart here, without a shell, and one with an unquoted
 * character that means something to a shell is refused. orted stays in the foreground ("--daemonize" is left out), so
 * that its end is seen and that it dies with its agent.
 */
#ifndef TY_DIST_AGENT_REMOTE_H
#define TY_DIST_AGENT_REMOTE_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* The client finds the agent by this variable: the path of a socket in a folder that only this user may enter. */
#define TY_REMOTE_VARIABLE "TRAINYARD_REMOTE"

enum { TY_REMOTE_FRAME_BYTES = 64 << 10 };

typedef struct ty_remote_options {
    const char *const *hosts; /* names; the first one leads */
    int n_hosts, self;
    void *ctx;
    /* Sends a frame of at most TY_REMOTE_FRAME_BYTES to the agent of a host; frames to one host stay in order. Between
     * the leader and another host only. */
    void (*send)(void *ctx, int host, const void *frame, size_t n_bytes);
} ty_remote_options;

typedef struct ty_remote ty_remote;

int ty_remote_open(const ty_remote_options *o, ty_remote **r, ty_error *err);
/* The environment in which the leader starts mpirun (by its bare name: a path would make it set up remote paths by a
 * shell), on top of `inherited` (NULL: ours); in the arena. client: command line of the client program. */
char **ty_remote_environment(const ty_remote *r, ty_arena *a, const char *const *inherited, const char *client);
/* Readable when there is work for ty_remote_turn(). */
int ty_remote_fd(const ty_remote *r);
int ty_remote_turn(ty_remote *r, ty_error *err);
/* A frame from another agent. TY_E_DATA, TY_E_PERMISSION: one that it must not send; nothing was done. */
int ty_remote_received(ty_remote *r, int from, const void *frame, size_t n_bytes, ty_error *err);
/* Kills what was started here and hangs up on clients. NULL is fine. */
void ty_remote_free(ty_remote *r);

/* The client program: `CLIENT HOST WORD...`, as mpirun calls it. Returns its exit status: that of the command. */
int ty_remote_client(int argc, const char *const *argv);

/* Takes a command apart as a shell would: blanks, '...', "...", \x. *words: NULL-terminated, in the arena, without
 * "--daemonize". TY_E_PERMISSION: not orted, or a word that only a shell could make sense of. */
int ty_remote_command(const char *text, ty_arena *a, char ***words, ty_error *err);

#endif
