/* html.c - see html.h. */
#include "entrypoint/html.h"

/* Colours of kinds: Observable's categorical palette, legible on both grounds. */
static const char style[] =
    ":root{color-scheme:light dark;--bg:#fcfcfa;--ink:#1c1e20;--soft:#6c7177;--line:#e3e3dd;--card:#fff;--bar:#efefea}"
    "@media(prefers-color-scheme:dark){:root{--bg:#15171a;--ink:#e7e5e0;--soft:#969ca3;--line:#2b2f34;--card:#1b1e22;"
    "--bar:#24282d}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;padding:40px 32px 80px;max-width:1280px;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;"
    "font-variant-numeric:tabular-nums}"
    "h1{font-size:26px;font-weight:640;letter-spacing:-.015em;margin:0 0 4px}"
    "h2{font-size:17px;font-weight:620;letter-spacing:-.01em;margin:44px 0 10px}"
    "p{margin:0 0 12px;color:var(--soft);max-width:76ch}"
    ".f{display:flex;flex-wrap:wrap;gap:10px 36px;margin:22px 0 8px}.f div{min-width:90px}"
    ".f b{display:block;font-size:22px;font-weight:600;letter-spacing:-.01em}.f span{color:var(--soft);font-size:13px}"
    ".k{display:flex;flex-wrap:wrap;gap:4px 20px;margin:14px 0;font-size:13px;color:var(--soft)}"
    ".k i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px}"
    "svg{display:block;width:100%;height:auto;overflow:visible}svg text{fill:var(--soft);font-size:11px}"
    "svg .g{stroke:var(--line);stroke-width:1;fill:none}svg .l{stroke:var(--ink);stroke-width:1.4;fill:none}"
    "svg .a{fill:var(--ink);fill-opacity:.1;stroke:var(--ink);stroke-width:1;stroke-opacity:.55}"
    "table{border-collapse:collapse;width:100%;font-size:14px}"
    "th{font-weight:500;color:var(--soft);font-size:12.5px;text-align:right;padding:4px 10px;"
    "border-bottom:1px solid var(--line)}"
    "td{text-align:right;padding:5px 10px;border-bottom:1px solid var(--line)}"
    "th:first-child,td:first-child{text-align:left;padding-left:0}td i{display:inline-block;width:11px;height:11px;"
    "border-radius:3px;margin-right:8px;vertical-align:-1px}"
    ".r{display:grid;grid-template-columns:minmax(170px,1.5fr) 2fr 2fr 1.2fr 84px 56px;gap:0 16px;align-items:center;"
    "padding:6px 0}"
    ".h{color:var(--soft);font-size:12.5px;border-bottom:1px solid var(--line)}"
    "details{border-bottom:1px solid var(--line)}details details:last-child{border-bottom:0}"
    "summary{list-style:none;cursor:pointer}summary::-webkit-details-marker{display:none}"
    "summary:hover{background:var(--bar)}"
    ".n{overflow-wrap:anywhere;padding-left:18px;position:relative}"
    ".n:before{content:'\\203A';position:absolute;left:4px;color:var(--soft)}details[open]>summary .n:before{"
    "transform:rotate(90deg)}"
    ".n em{font-style:normal;color:var(--soft);font-size:12.5px;margin-left:8px}"
    ".b{display:flex;gap:1px;height:15px;background:var(--bar);border-radius:3px;overflow:hidden}"
    ".b i{min-width:2px;flex:none}.b i:hover{filter:brightness(1.18)}"
    ".t{text-align:right;font-size:13.5px}.s{text-align:right;color:var(--soft);font-size:12.5px}"
    ".in{margin:0 0 8px 18px;padding-left:14px;border-left:2px solid var(--line)}"
    ".u{border:0}.u>summary,.v{display:grid;grid-template-columns:14px 44px 1fr 76px 84px 84px 96px;gap:0 10px;"
    "align-items:baseline;padding:3px 0;font-size:13px}"
    ".u>summary i,.v i{width:10px;height:10px;border-radius:3px;align-self:center}"
    ".u span,.v span{text-align:right;color:var(--soft)}.u .x,.v .x{text-align:left;color:var(--ink);"
    "overflow-wrap:anywhere;font-family:ui-monospace,'SF Mono',Menlo,Consolas,monospace;font-size:12px}"
    "pre{margin:2px 0 8px 68px;padding:8px 12px;background:var(--card);border:1px solid var(--line);border-radius:6px;"
    "font:12px/1.55 ui-monospace,'SF Mono',Menlo,Consolas,monospace;overflow-x:auto;color:var(--ink)}"
    "h3{font-size:12px;font-weight:560;color:var(--soft);margin:10px 0 2px}"
    ".w0{background:#4269d0;fill:#4269d0}.w1{background:#a463f2;fill:#a463f2}.w2{background:#ff8ab7;fill:#ff8ab7}"
    ".w3{background:#efb118;fill:#efb118}.w4{background:#ff725c;fill:#ff725c}.w5{background:#9c6b4e;fill:#9c6b4e}"
    ".w6{background:#6cc5b0;fill:#6cc5b0}.w7{background:#3ca951;fill:#3ca951}.w8{background:#9498a0;fill:#9498a0}"
    ".w9{background:#97bbf5;fill:#97bbf5}"
    "@media(max-width:760px){body{padding:20px 14px}.r{grid-template-columns:1fr 1fr 1fr 70px}.r>*:nth-child(4),"
    ".r>*:nth-child(6){display:none}}";

_Static_assert(TY_N_WORKS == 10, "a kind of work without a colour");

void ty_html_text(const char *text, ty_buf *out)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            ty_buf_adds(out, "&lt;");
            break;
        case '>':
            ty_buf_adds(out, "&gt;");
            break;
        case '&':
            ty_buf_adds(out, "&amp;");
            break;
        case '"':
            ty_buf_adds(out, "&quot;");
            break;
        default:
            ty_buf_addc(out, (unsigned char)*text < 0x20 && *text != '\n' ? ' ' : *text);
        }
}

void ty_html_begin(const char *title, ty_buf *out)
{
    ty_buf_adds(out, "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
                     "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>");
    ty_html_text(title, out);
    ty_buf_addf(out, "</title>\n<style>/*<![CDATA[*/%s/*]]>*/</style>\n</head>\n<body>\n", style);
}

void ty_html_end(ty_buf *out)
{
    ty_buf_adds(out, "</body>\n</html>\n");
}

void ty_html_figure(const char *value, const char *what, ty_buf *out)
{
    ty_buf_adds(out, "<div><b>");
    ty_html_text(value, out);
    ty_buf_adds(out, "</b><span>");
    ty_html_text(what, out);
    ty_buf_adds(out, "</span></div>\n");
}
