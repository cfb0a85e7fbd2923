/* ini.h - the two files of AWS's tools: ~/.aws/config and ~/.aws/credentials.
 *
 *     [profile training]            section "profile training"
 *     region = eu-west-1            key "region"
 *     s3 =                          a key without a value may have keys of its own below it, indented:
 *       addressing_style = path     key "s3.addressing_style"
 *     # and ; begin comments, at the start of a line only
 *
 * As Python's configparser reads them, which AWS's own tools use: keys in lower case, what is indented goes on with the
 * line above. Values may be secrets: no message quotes one.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_INI_H
#define TY_ESTIMATOR_SPEC_AWS_INI_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ty_ini_entry {
    const char *section, *key, *value; /* key NULL: the section's own line */
    uint32_t line;
} ty_ini_entry;

typedef struct ty_ini {
    const char *name; /* of the file */
    ty_ini_entry *at;
    size_t n;
} ty_ini;

enum { TY_INI_MAX_BYTES = 1 << 20, TY_INI_MAX_ENTRIES = 5000 };

/* All strings are copies in the arena. Refuses what is no INI, a section or key that stands twice, and more than the
 * limits above. */
int ty_ini_parse(ty_arena *arena, const char *name, const char *text, size_t len, ty_ini *out, ty_error *err);
bool ty_ini_has(const ty_ini *ini, const char *section);
/* NULL if there is none. */
const char *ty_ini_get(const ty_ini *ini, const char *section, const char *key);

#endif
