/* cache_key.c - what decides compiled kernels beside their text, and the first difference in words. See cache.h. */
#define _GNU_SOURCE
#include "compiler/target/cache.h"

#include "base/file.h"
#include "base/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- this machine ---- */

/* The file that would be started as `cc`, or NULL. */
static const char *key_find_program(const char *cc, ty_arena *a)
{
    const char *path = getenv("PATH");
    if (strchr(cc, '/'))
        return access(cc, X_OK) == 0 ? cc : NULL;
    for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
        size_t n = strcspn(p, ":");
        const char *file = ty_arena_printf(a, "%.*s/%s", (int)n, p, cc);
        if (n > 0 && access(file, X_OK) == 0)
            return file;
        p += n + (p[n] == ':');
    }
    return NULL;
}

/* Asking a compiler for its version costs as much as a warm start; its file says as much. */
static const char *key_compiler(const char *cc, ty_arena *a)
{
    struct stat st;
    const char *program = key_find_program(cc, a);
    char *real = program ? realpath(program, NULL) : NULL;
    const char *text = ty_arena_printf(a, "%s, not found", cc);
    if (real && stat(real, &st) == 0)
        text = ty_arena_printf(a, "%s, %lld bytes, changed %lld", real, (long long)st.st_size, (long long)st.st_mtime);
    free(real);
    return text;
}

/* The first processor's lines of /proc/cpuinfo that say what it can do: x86's names, then ARM's. */
static void key_processor(ty_cache_key *key, ty_arena *a)
{
    static const char *const model[] = {"vendor_id",       "cpu family",  "model",    "model name", "stepping",
                                        "CPU implementer", "CPU variant", "CPU part", NULL};
    char line[8192], name[512] = "", features[8192] = "";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f) && line[0] != '\n') {
        char *value = strchr(line, ':');
        if (!value)
            continue;
        size_t n = strcspn(line, "\t:"), used = strlen(name);
        value += strspn(value, ": ");
        value[strcspn(value, "\n")] = 0;
        line[n] = 0;
        for (int i = 0; model[i]; i++)
            if (strcmp(line, model[i]) == 0)
                snprintf(name + used, sizeof name - used, "%s%s", used ? " " : "", value);
        if (strcmp(line, "flags") == 0 || strcmp(line, "Features") == 0)
            snprintf(features, sizeof features, "%s", value);
    }
    if (f)
        fclose(f);
    ty_cache_key_add(key, a, true, "processor", name);
    ty_cache_key_add(key, a, true, "processor features", features);
}

void ty_cache_key_add_machine(ty_cache_key *key, ty_arena *a, const char *cc)
{
    ty_cache_key_add(key, a, true, "version of trainyard", TY_VERSION);
    ty_cache_key_add(key, a, true, "C compiler", key_compiler(cc, a));
    key_processor(key, a);
}

/* ---- differences ---- */

static bool key_has_word(const char *list, const char *word, size_t n)
{
    for (const char *p = list; (p = strstr(p, word)); p++)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == 0))
            return true;
    return false;
}

int ty_cache_missing_words(const char *list, const char *other, const char *lead, ty_buf *out)
{
    char word[64];
    int n_missing = 0;
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, " ");
        if (n > 0 && n < sizeof word) {
            memcpy(word, p, n);
            word[n] = 0;
            if (!key_has_word(other, word, n) && n_missing++ < 8)
                ty_buf_addf(out, "%s%s", n_missing == 1 ? lead : " ", word);
        }
        p += n + (p[n] == ' ');
    }
    return n_missing;
}

static void key_tell(const ty_cache_field *now, const char *then, ty_buf *out)
{
    if (strcmp(now->name, "processor features") == 0) {
        ty_buf_adds(out, "processor features:");
        ty_cache_missing_words(then, now->value, " then also ", out);
        ty_cache_missing_words(now->value, then, " now also ", out);
    } else if (strcmp(now->name, "kernels") == 0) {
        ty_buf_adds(out, "the step itself: layers, loss, optimizer or their settings");
    } else {
        ty_buf_addf(out, "%s: then %.300s, now %.300s", now->name, then, now->value);
    }
}

bool ty_cache_difference(const ty_cache_key *then, const ty_cache_key *now, ty_cache_scope scope, ty_buf *out)
{
    for (int i = 0; i < now->n; i++) {
        const ty_cache_field *field = &now->field[i];
        const char *value = ty_cache_key_value(then, field->name);
        bool machine = field->decides && strcmp(field->name, "kernels") != 0;
        if ((scope == TY_CACHE_STEP && machine) || (value && strcmp(value, field->value) == 0))
            continue;
        key_tell(field, value ? value : "none", out);
        return true;
    }
    return false;
}

static int key_likeness(const ty_cache_key *a, const ty_cache_key *b)
{
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        const char *value = ty_cache_key_value(b, a->field[i].name);
        n += value && strcmp(value, a->field[i].value) == 0;
    }
    return n;
}

void ty_cache_explain(const char *dir, const ty_cache_key *key, ty_buf *out)
{
    ty_arena a;
    ty_file_entry *file;
    size_t n = 0;
    ty_cache_entry entry, best = {.n_files = 0};
    const char *best_name = NULL;
    int best_like = -1;
    ty_arena_init(&a);
    if (ty_file_list(dir, &a, &file, &n, NULL) < 0)
        n = 0;
    for (size_t i = 0; i < n; i++) {
        if (file[i].kind != 'd' || strlen(file[i].name) != TY_CACHE_HEX_BYTES - 1 ||
            ty_cache_read(ty_arena_printf(&a, "%s/%s", dir, file[i].name), &a, &entry, NULL) < 0)
            continue;
        int like = key_likeness(key, &entry.key);
        if (like > best_like)
            best_like = like, best = entry, best_name = file[i].name;
    }
    if (!best_name) {
        ty_buf_addf(out, "the cache %s has no entry", dir);
    } else {
        ty_buf_addf(out, "no entry fits; the nearest, %.12s, differs in ", best_name);
        if (!ty_cache_difference(&best.key, key, TY_CACHE_ALL, out))
            ty_buf_adds(out, "nothing: it is this one");
    }
    ty_arena_fini(&a);
}
