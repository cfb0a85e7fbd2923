/* session_keep.c - the kept index of a session's data (container/input/keep.h): where it lies, and what is said of it.
 */
#include "base/entries.h"
#include "base/log.h"
#include "base/quantity.h"
#include "entrypoint/session.h"

#include <stdlib.h>
#include <time.h>

enum { KEEP_FROM_MS = 100 }; /* what is opened in less gains nothing that anybody would notice */

static int64_t keep_from_ms(void)
{
    const char *ms = getenv("TRAINYARD_INDEX_MS");
    return ms ? strtoll(ms, NULL, 10) : KEEP_FROM_MS;
}

ty_keep ty_session_keep(const ty_session *s, const ty_recipe_data *d)
{
    return (ty_keep){.folders = d->keep_index ? ty_session_cache_folder(s) : NULL,
                     .max_bytes = ty_session_cache_bytes(),
                     .least_us = keep_from_ms() * 1000,
                     .is_read_only = s->index_note != NULL};
}

/* "2026-11-24 03:10 UTC" */
static const char *made_text(int64_t made_s, char out[32])
{
    time_t at = (time_t)made_s;
    struct tm utc;
    out[0] = 0;
    if (gmtime_r(&at, &utc))
        strftime(out, 32, "%Y-%m-%d %H:%M UTC", &utc);
    return out;
}

static void note_kept(const ty_dataset *ds, const char *section, ty_buf *out)
{
    char made[32];
    const ty_kept *k = &ds->kept;
    if (k->made_s)
        ty_buf_addf(out, "%s: the cache has the index of these data (made %s)\n", section, made_text(k->made_s, made));
    else if (k->differs)
        ty_buf_addf(out, "%s: no index of these data, but one of others: %s\n", section, k->differs);
    else
        ty_buf_addf(out, "%s: no index of these data; opening them took %.0f ms (one is kept from %lld ms on)\n",
                    section, ds->stats.load_ms, (long long)keep_from_ms());
}

void ty_session_tell_kept(const ty_session *s, const ty_dataset *ds, const char *section)
{
    char made[32], size[32], most[32];
    const ty_kept *k = &ds->kept;
    int64_t max_bytes = ty_session_cache_bytes();
    if (s->index_note && k->is_asked)
        note_kept(ds, section, s->index_note);
    else if (k->made_s)
        ty_log_info("data", "%s: index of the data from the cache (made %s)", section, made_text(k->made_s, made));
    else if (k->n_bytes)
        ty_log_info("data", "%s: index of the data kept in the cache, %s%s%s", section,
                    ty_bytes_text((uint64_t)k->n_bytes, size, sizeof size), k->differs ? "; made anew: " : "",
                    k->differs ? k->differs : "");
    else if (k->too_big)
        ty_log_info("data", "%s: the index of the data is not kept: %s, and the cache may have %s (TRAINYARD_CACHE_MB)",
                    section, ty_bytes_text((uint64_t)k->too_big, size, sizeof size),
                    ty_bytes_text((uint64_t)(max_bytes > 0 ? max_bytes : TY_ENTRIES_MAX_BYTES), most, sizeof most));
}
