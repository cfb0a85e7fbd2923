/* cache.h - compiled kernels kept in a folder and found again.
 *
 *     DIR/<64 hex>/entry.txt    what the objects were made of and from, and their hashes
 *     DIR/<64 hex>/k0.so ...    one object a translation unit; k0.cubin ... for a GPU
 *     DIR/<64 hex>.lock         held by the process that compiles this entry
 *
 * The name is the SHA-256 of the fields that decide the objects: our version, the C compiler's program, its flags, the
 * processor and its features, the text of the kernels. Any difference is another entry. Beside them stand facts, which
 * decide nothing but say in people's words why a text is another one: the model, the shapes of the inputs, the states.
 *
 * An entry is written under a temporary name and renamed, so it is whole or absent; its objects are hashed when they
 * are loaded, since they are code. Who finds the lock taken waits for the other's entry: several processes that start
 * at once compile once. The entries used longest ago go when the folder has grown past its limit (base/entries.h).
 * Whoever may write into the folder may run code in this process: keep it yours.
 */
#ifndef TY_TARGET_CACHE_H
#define TY_TARGET_CACHE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TY_CACHE_HEX_BYTES  65
#define TY_CACHE_MAX_FIELDS 24
#define TY_CACHE_MAX_FILES  64
#define TY_CACHE_ENTRY_NAME "entry.txt"

typedef struct ty_cache_field {
    const char *name, *value; /* no tab, no line end */
    bool decides;
} ty_cache_field;

/* Fields in the order in which they are compared: the first one that differs is the reason that is told. */
typedef struct ty_cache_key {
    ty_cache_field field[TY_CACHE_MAX_FIELDS];
    int n;
} ty_cache_key;

/* Adds a field; value is copied into the arena, tabs and line ends as blanks. */
void ty_cache_key_add(ty_cache_key *key, ty_arena *a, bool decides, const char *name, const char *value);
/* cache_key.c: adds our version, the compiler `cc` as found in PATH, and this processor. */
void ty_cache_key_add_machine(ty_cache_key *key, ty_arena *a, const char *cc);
int ty_cache_key_hex(const ty_cache_key *key, char hex[TY_CACHE_HEX_BYTES], ty_error *err);
const char *ty_cache_key_value(const ty_cache_key *key, const char *name); /* NULL: there is none */

/* What entry.txt says. */
typedef struct ty_cache_entry {
    ty_cache_key key;
    const char *file[TY_CACHE_MAX_FILES]; /* plain names */
    char hash[TY_CACHE_MAX_FILES][TY_CACHE_HEX_BYTES];
    int n_files;
} ty_cache_entry;

/* Reads folder/entry.txt. */
int ty_cache_read(const char *folder, ty_arena *a, ty_cache_entry *out, ty_error *err);
/* Whether every file is there with its hash; the error names the one that is not. */
int ty_cache_verify(const char *folder, const ty_cache_entry *entry, ty_error *err);

/* Objects to be kept: k0<suffix> ... k<n-1><suffix> in a folder, or bytes. */
typedef struct ty_cache_objects {
    const char *suffix; /* ".so", ".cubin", ".algorithm" */
    int n;
    const char *folder; /* NULL: bytes */
    const void *bytes[TY_CACHE_MAX_FILES];
    size_t n_bytes[TY_CACHE_MAX_FILES];
} ty_cache_objects;

/* Copies objects, with their description, to a folder that appears whole at `to`; a former one of the same kind is
 * replaced. The parent must be there. */
int ty_cache_store(const ty_cache_objects *objects, const ty_cache_key *key, const char *to, ty_error *err);

/* Takes the lock of an entry, waiting for whoever has it, at most wait_ms. -1: not to be had (a store without locks, a
 * folder that cannot be written, time over); going on without is right. */
int ty_cache_lock(const char *dir, const char *hex, int64_t wait_ms);
void ty_cache_unlock(int lock, const char *dir, const char *hex);

/* Why no entry of this folder fits: the entry that is most like the key, and the first field that differs, in words.
 * One line, appended to out. */
void ty_cache_explain(const char *dir, const ty_cache_key *key, ty_buf *out);
/* Which fields are compared. STEP: facts and the kernels only; the processor may be another one that can as much. */
typedef enum ty_cache_scope { TY_CACHE_ALL, TY_CACHE_STEP } ty_cache_scope;

/* Appends the first difference between an entry and what is wanted, "inputs: then x, now y"; false: there is none. */
bool ty_cache_difference(const ty_cache_key *then, const ty_cache_key *now, ty_cache_scope scope, ty_buf *out);
/* Appends lead and the words of `list` that `other` lacks; returns how many. */
int ty_cache_missing_words(const char *list, const char *other, const char *lead, ty_buf *out);

#endif
