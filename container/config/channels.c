/* channels.c - reads inputdataconfig.json. */
#include "container/config/channels.h"

#include "base/suggest.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define CHANNEL_NAME_MAX_BYTES 64

/* A word in one of the spellings seen in real jobs: FullyReplicated, FULLY_REPLICATED, fullyreplicated. */
static bool channel_same_word(const char *found, const char *wanted)
{
    for (;; found++, wanted++) {
        while (*found == '_')
            found++;
        if (tolower((unsigned char)*found) != tolower((unsigned char)*wanted))
            return false;
        if (*found == '\0')
            return true;
    }
}

/* *out = index of the word in the NULL-terminated list; 0 if the key is absent or null. */
static int channel_word(const ty_doc *map, const char *key, const char *const *words, int *out, ty_error *err)
{
    const ty_doc *d = ty_doc_find(map, key);
    const char *text;

    *out = 0;
    if (d == NULL || d->kind == TY_DOC_NULL)
        return 0;
    if (ty_doc_string(d, &text, err) < 0)
        return -1;
    for (int i = 0; words[i] != NULL; i++)
        if (channel_same_word(text, words[i])) {
            *out = i;
            return 0;
        }
    bool three = words[2] != NULL;
    return ty_doc_error(d, err, TY_E_RANGE, NULL, "channel \"%s\": \"%s\" is \"%s\", expected %s%s%s%s%s", map->key,
                        key, text, words[0], three ? ", " : " or ", words[1], three ? " or " : "",
                        three ? words[2] : "");
}

/* [A-Za-z0-9._-]{1,64} by the API's definition, and not a name with a meaning to the file system. */
static int channel_check_name(const ty_doc *d, ty_error *err)
{
    size_t len = strlen(d->key);
    bool good = len > 0 && len <= CHANNEL_NAME_MAX_BYTES && strcmp(d->key, ".") != 0 && strcmp(d->key, "..") != 0;

    for (size_t i = 0; good && i < len; i++)
        good = isalnum((unsigned char)d->key[i]) || strchr("._-", d->key[i]) != NULL;
    if (good)
        return 0;
    return ty_doc_error_key(d, err, TY_E_RANGE, NULL,
                            "\"%s\" is no channel name, expected 1 to %d letters, digits, dots, dashes or underscores",
                            d->key, CHANNEL_NAME_MAX_BYTES);
}

static int channel_init(ty_channel *c, ty_arena *a, const ty_doc *d, const char *input_data, ty_error *err)
{
    static const char *const modes[] = {"File", "FastFile", "Pipe", NULL};
    static const char *const distributions[] = {"FullyReplicated", "ShardedByS3Key", NULL};
    static const char *const wrappers[] = {"None", "RecordIO", NULL};
    const ty_doc *type = ty_doc_find(d, "ContentType");
    const char *content_type = "";
    int mode, distribution, wrapper;

    if (channel_check_name(d, err) < 0 || ty_doc_expect(d, TY_DOC_MAP, err) < 0 ||
        channel_word(d, "TrainingInputMode", modes, &mode, err) < 0 ||
        channel_word(d, "S3DistributionType", distributions, &distribution, err) < 0 ||
        channel_word(d, "RecordWrapperType", wrappers, &wrapper, err) < 0)
        return -1;
    if (type != NULL && type->kind != TY_DOC_NULL && ty_doc_string(type, &content_type, err) < 0)
        return -1;
    *c = (ty_channel){.name = ty_arena_strdup(a, d->key),
                      .path = ty_arena_printf(a, "%s/%s", input_data, d->key),
                      .mode = (ty_input_mode)mode,
                      .sharded = distribution == 1,
                      .record_io = wrapper == 1,
                      .content_type = ty_arena_strdup(a, content_type)};
    return 0;
}

static int channel_compare(const void *a, const void *b)
{
    return strcmp(((const ty_channel *)a)->name, ((const ty_channel *)b)->name);
}

int ty_channels_init(ty_channels *c, ty_arena *a, const ty_doc *doc, const char *input_data, ty_error *err)
{
    *c = (ty_channels){.whole = ty_value_dict()};
    if (doc == NULL)
        return 0;
    if (ty_doc_expect(doc, TY_DOC_MAP, err) < 0)
        return -1;

    ty_channel *items = TY_NEW_ARRAY(a, ty_channel, doc->n_items);

    for (size_t i = 0; i < doc->n_items; i++)
        if (channel_init(&items[i], a, &doc->items[i], input_data, err) < 0)
            return -1;
    if (doc->n_items > 1)
        qsort(items, doc->n_items, sizeof *items, channel_compare);
    c->items = items;
    c->n_items = doc->n_items;
    c->whole = ty_value_from_doc(a, doc);
    return 0;
}

const char *ty_input_mode_name(ty_input_mode mode)
{
    return mode == TY_INPUT_FILE ? "File" : mode == TY_INPUT_FAST_FILE ? "FastFile" : "Pipe";
}

static int channel_missing(const ty_channels *c, const char *name, ty_error *err)
{
    ty_suggestion near = {.word = name};
    char declared[512] = "";
    size_t len = 0;

    for (size_t i = 0; i < c->n_items; i++) {
        ty_suggest_offer(&near, c->items[i].name);
        if (len + strlen(c->items[i].name) + 3 < sizeof declared) {
            len += (size_t)(stpcpy(stpcpy(declared + len, i > 0 ? ", " : ""), c->items[i].name) - (declared + len));
        }
    }
    ty_error_set(err, TY_E_CHANNEL, "there is no input channel \"%s\"; the job declares %s%s", name,
                 c->n_items == 0   ? "no channels"
                 : c->n_items == 1 ? "only "
                                   : "",
                 declared);
    if (near.best != NULL)
        return ty_error_help(err, "did you mean \"%s\"?", near.best);
    return ty_error_help(err, "add the channel to the job's inputs (input/config/inputdataconfig.json)");
}

const ty_channel *ty_channels_find(const ty_channels *c, const char *name, ty_error *err)
{
    for (size_t i = 0; i < c->n_items; i++)
        if (strcmp(c->items[i].name, name) == 0)
            return &c->items[i];
    channel_missing(c, name, err);
    return NULL;
}
