/* yaml_scalar.c - what a plain scalar means: the core schema of YAML 1.2.2, section 10.3.2, to the letter.
 *
 *     null    null | Null | NULL | ~ | (empty)
 *     bool    true | True | TRUE | false | False | FALSE
 *     int     [-+]? [0-9]+          0o [0-7]+          0x [0-9a-fA-F]+
 *     float   [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
 *             [-+]? ( \.inf | \.Inf | \.INF )          \.nan | \.NaN | \.NAN
 */
#include "base/yaml_scalar.h"

#include "base/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789";

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool is_all(const char *text, const char *set)
{
    return text[0] && text[strspn(text, set)] == 0;
}

static bool is_float_text(const char *s)
{
    s += *s == '-' || *s == '+';
    size_t n_before = strspn(s, digits), n_after = 0;
    s += n_before;
    if (*s == '.') {
        n_after = strspn(++s, digits);
        s += n_after;
    }
    if (n_before + n_after == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '-' || *s == '+';
        return is_all(s, digits);
    }
    return *s == 0;
}

/* An integer too long for int64 becomes a float, like in JSON. */
static bool resolve_integer(ty_doc *d, const char *text)
{
    const char *unsigned_text = text + (*text == '-' || *text == '+');
    int base = 0;
    if (is_all(unsigned_text, digits))
        base = 10;
    else if (strncmp(text, "0o", 2) == 0 && is_all(text + 2, "01234567"))
        base = 8;
    else if (strncmp(text, "0x", 2) == 0 && is_all(text + 2, "0123456789abcdefABCDEF"))
        base = 16;
    if (base == 0)
        return false;
    errno = 0;
    d->kind = TY_DOC_INT;
    d->integer = strtoll(base == 10 ? text : text + 2, NULL, base);
    if (errno != 0) {
        d->kind = TY_DOC_FLOAT;
        d->number = base == 8 ? ldexp(1, (int)strlen(text) * 3) : strtod(text, NULL);
    }
    return true;
}

static bool resolve_float(ty_doc *d, const char *text)
{
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL}, *const nans[] = {".nan", ".NaN", ".NAN",
                                                                                             NULL};
    if (is_float_text(text))
        d->number = strtod(text, NULL);
    else if (is_one_of(text + (*text == '-' || *text == '+'), infinities))
        d->number = *text == '-' ? -(double)INFINITY : (double)INFINITY;
    else if (is_one_of(text, nans))
        d->number = (double)NAN;
    else
        return false;
    d->kind = TY_DOC_FLOAT;
    return true;
}

void ty_yaml_resolve(ty_doc *d)
{
    static const char *const nulls[] = {"null", "Null", "NULL", "~", "", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL}, *const falses[] = {"false", "False", "FALSE",
                                                                                          NULL};
    const char *text = d->raw;
    if (is_one_of(text, nulls)) {
        d->kind = TY_DOC_NULL;
    } else if (is_one_of(text, trues) || is_one_of(text, falses)) {
        d->kind = TY_DOC_BOOL;
        d->boolean = is_one_of(text, trues);
    } else if (!resolve_integer(d, text) && !resolve_float(d, text)) {
        d->kind = TY_DOC_STRING;
        d->string = text;
    }
}

/* 1:30 is ninety in YAML 1.1. */
static bool is_sexagesimal(const char *s)
{
    size_t n = strspn(s, digits);
    if (n == 0 || s[n] != ':')
        return false;
    while (s[n] == ':') {
        s += n + 1;
        n = strspn(s, digits);
        if (n == 0 || n > 2 || (n == 2 && s[0] > '5'))
            return false;
    }
    return s[n] == 0;
}

static const char *reading_elsewhere(const ty_doc *d)
{
    static const char *const yes[] = {"yes", "Yes", "YES", "on", "On", "ON", "y", "Y", NULL};
    static const char *const no[] = {"no", "No", "NO", "off", "Off", "OFF", "n", "N", NULL};
    const char *text = d->raw, *unsigned_text = text + (*text == '-' || *text == '+');
    if (d->kind == TY_DOC_STRING) {
        if (is_one_of(text, yes))
            return "true";
        if (is_one_of(text, no))
            return "false";
        if (is_sexagesimal(text))
            return "a number to the base of 60";
        return strchr(text, '_') && text[0] != '_' && is_all(unsigned_text, "0123456789_") ? "an integer" : NULL;
    }
    if (d->kind == TY_DOC_INT && unsigned_text[0] == '0' && unsigned_text[1] && is_all(unsigned_text, "01234567"))
        return "an octal number";
    return d->kind == TY_DOC_INT && strncmp(text, "0o", 2) == 0 ? "a string" : NULL;
}

bool ty_yaml_scalar_doubt(const ty_doc *d, ty_error *warning)
{
    const char *elsewhere = reading_elsewhere(d);
    if (!elsewhere)
        return false;
    const char *here = d->kind == TY_DOC_STRING ? "a string" : "a decimal integer";
    if (d->kind == TY_DOC_INT && strncmp(d->raw, "0o", 2) == 0)
        here = "an octal integer";
    ty_doc_error(d, warning, TY_E_TYPE, NULL, "%s is %s here; other YAML readers take it for %s", d->raw, here,
                 elsewhere);
    if (d->kind == TY_DOC_STRING)
        ty_error_help(warning, "write \"%s\" in quotes, or %s", d->raw,
                      strcmp(elsewhere, "true") == 0 || strcmp(elsewhere, "false") == 0 ? elsewhere
                                                                                        : "the plain number");
    else
        ty_error_help(warning, "write %lld, or \"%s\" in quotes", (long long)d->integer, d->raw);
    return true;
}
