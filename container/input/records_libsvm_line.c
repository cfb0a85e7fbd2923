/* records_libsvm_line.c - reads a line of LibSVM from its label on. */
#include "container/input/number.h"
#include "container/input/records_libsvm.h"

#include <string.h>

static bool libsvm_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void libsvm_skip_blanks(libsvm_line *l)
{
    while (l->p < l->end && libsvm_is_blank(*l->p))
        l->p++;
}

static int libsvm_refuse(const libsvm_line *l, const char *expected, ty_error *err)
{
    size_t n = 0;
    while (l->p + n < l->end && n < 30 && !libsvm_is_blank(l->p[n]))
        n++;
    return ty_error_set(err, TY_E_DATA_VALUE, "expected %s, found \"%.*s\"", expected, (int)n, l->p);
}

/* A word ends here. */
static bool libsvm_ends(const libsvm_line *l)
{
    return l->p == l->end || libsvm_is_blank(*l->p);
}

static const char *libsvm_number(libsvm_line *l, double *out)
{
    if (l->end - l->p > 1 && (unsigned char)(l->p[0] - '0') < 10 && libsvm_is_blank(l->p[1])) { /* 1, mostly */
        *out = l->p[0] - '0';
        return ++l->p;
    }
    const char *after = ty_number_plain(l->p, l->ahead, out);
    if (!after || after > l->end)
        after = ty_number_scan(l->p, l->end, out);
    if (after)
        l->p = after;
    return after;
}

int libsvm_begin(libsvm_line *l, const char *text, size_t n, const char *ahead, bool lenient, ty_error *err)
{
    const char *comment = memchr(text, '#', n);
    *l = (libsvm_line){.p = text, .end = comment ? comment : text + n, .weight = 1, .lenient = lenient};
    l->ahead = ahead;
    libsvm_skip_blanks(l);
    if (!libsvm_number(l, &l->label))
        return libsvm_refuse(l, "a label", err);
    if (l->p < l->end && *l->p == ':') {
        l->p++;
        if (!libsvm_number(l, &l->weight))
            return libsvm_refuse(l, "a weight behind the label", err);
    }
    if (!libsvm_ends(l))
        return libsvm_refuse(l, "a blank behind the label", err);
    libsvm_skip_blanks(l);
    if (l->end - l->p < 4 || memcmp(l->p, "qid:", 4) != 0)
        return 0;
    l->p += 4;
    const char *after = ty_integer_scan(l->p, l->end, &l->qid);
    if (!after)
        return libsvm_refuse(l, "a whole number behind qid:", err);
    l->p = after;
    l->has_qid = true;
    if (!libsvm_ends(l))
        return libsvm_refuse(l, "a blank behind the qid", err);
    libsvm_skip_blanks(l);
    return 0;
}

int libsvm_next(libsvm_line *l, int64_t *index, double *value, ty_error *err)
{
    if (l->p == l->end)
        return 0;
    const char *start = l->p, *after = ty_integer_plain(l->p, l->ahead, index);
    if (!after || after > l->end)
        after = ty_integer_scan(l->p, l->end, index);
    if (!after || *index < 0 || *start == '+')
        return libsvm_refuse(l, "an index, a whole number from 0 on", err);
    l->p = after;
    if (l->lenient && libsvm_ends(l)) {
        *value = 1;
        libsvm_skip_blanks(l);
        return 1;
    }
    if (l->p == l->end || *l->p != ':') {
        l->p = start;
        libsvm_refuse(l, "index:value", err);
        return ty_error_help(err, "an index alone means the value 1 to some programs: write it out, as 7:1, or say "
                                  "strict: false");
    }
    l->p++;
    if (!libsvm_number(l, value))
        return libsvm_refuse(l, "a value behind the index", err);
    if (!libsvm_ends(l))
        return libsvm_refuse(l, "a blank behind the value", err);
    libsvm_skip_blanks(l);
    return 1;
}

bool libsvm_is_none(const ty_frame *record)
{
    const char *p = (const char *)record->data, *end = p + record->n;
    while (p < end && libsvm_is_blank(*p))
        p++;
    return p == end || *p == '#';
}
