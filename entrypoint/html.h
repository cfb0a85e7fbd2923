/* html.h - the frame of a page for people: one file, nothing loaded from elsewhere, no script.
 *
 * What folds is a <details>; light or dark is the reader's setting. Markup is XHTML, so that any XML parser can check
 * it.
 *
 *     ty_html_begin("train.yaml", &out);
 *     ty_html_text(name_from_a_file, &out);            // escaped
 *     ty_html_end(&out);
 *
 * A kind of work has one colour on all pages: class "w0" and so on, by ty_work.
 */
#ifndef TY_ENTRYPOINT_HTML_H
#define TY_ENTRYPOINT_HTML_H

#include "base/buf.h"
#include "compiler/compiler.h"

void ty_html_begin(const char *title, ty_buf *out);
void ty_html_end(ty_buf *out);
/* Text between tags or in an attribute. */
void ty_html_text(const char *text, ty_buf *out);
/* One figure of the head of a page: a large value and what it is. */
void ty_html_figure(const char *value, const char *what, ty_buf *out);

#endif
