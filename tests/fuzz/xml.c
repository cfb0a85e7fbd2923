/* The reader of what S3 and STS answer: no text is larger than the document, and no tree deeper than is allowed. */
#include "estimator_spec/aws/xml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t look(const ty_xml *x, int depth)
{
    size_t bytes = strlen(x->text);
    if (depth > TY_XML_MAX_DEPTH || !*x->name || (x->first && *x->text) || !ty_xml_text(x, x->name))
        abort();
    for (const ty_xml *child = x->first; child; child = child->next) {
        if (!ty_xml_find(x, child->name))
            abort();
        bytes += look(child, depth + 1);
    }
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_arena arena;
    ty_xml *root;
    ty_error err = {0};
    ty_arena_init(&arena);
    if (ty_xml_parse(&arena, "fuzz", (const char *)data, size, &root, &err) == 0) {
        if (look(root, 1) > size)
            abort();
    } else if (err.code == TY_E_NONE || !err.message[0])
        abort();
    ty_arena_fini(&arena);
    return 0;
}
