/* xml.h - what S3, STS and IAM answer: small XML documents, read into a tree.
 *
 * Elements and their text alone: attributes and namespaces are skipped, comments and processing instructions too, and
 * there are no entities but the five of XML and numbers. A document type is refused, and so is what goes past 16
 * levels or 100,000 elements.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_XML_H
#define TY_ESTIMATOR_SPEC_AWS_XML_H

#include "base/arena.h"
#include "base/error.h"

typedef struct ty_xml ty_xml;
struct ty_xml {
    const char *name;
    const char *text;     /* between its tags if it has no elements, else "" */
    ty_xml *first, *next; /* of its elements; of its parent's */
};

enum { TY_XML_MAX_DEPTH = 16, TY_XML_MAX_ELEMENTS = 100000 };

/* The outermost element, in the arena. `name` says in messages whose answer it is. */
int ty_xml_parse(ty_arena *arena, const char *name, const char *text, size_t len, ty_xml **out, ty_error *err);
/* The first element of that name; NULL if there is none, or if x is NULL. Next of that name: ty_xml_again. */
const ty_xml *ty_xml_find(const ty_xml *x, const char *name);
const ty_xml *ty_xml_again(const ty_xml *x);
/* Its text; "" if there is none. */
const char *ty_xml_text(const ty_xml *x, const char *name);

#endif
