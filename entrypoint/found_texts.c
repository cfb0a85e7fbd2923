/* found_texts.c - see found_texts.h. */
#include "entrypoint/found_texts.h"

#include "base/log.h"
#include "container/input/map/map.h"
#include "entrypoint/found.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    USUAL_LENGTH = 128,
    QUESTION_LENGTH = 384
}; /* of Hugging Face's examples (max_seq_length of run_glue.py, run_qa.py) */

#define LABELS "labels"

/* What a model's input takes of a text. */
static const struct {
    const char *input;
    ty_token_part part;
    bool of_labels; /* of the text that a decoder foretells */
} text_inputs[] = {{"input_ids", TY_TOKENS_IDS, false},
                   {"attention_mask", TY_TOKENS_MASK, false},
                   {"token_type_ids", TY_TOKENS_TYPES, false},
                   {"decoder_input_ids", TY_TOKENS_PREVIOUS, true}};

static int text_input(const char *name)
{
    for (size_t i = 0; i < sizeof text_inputs / sizeof text_inputs[0]; i++)
        if (strcmp(text_inputs[i].input, name) == 0)
            return (int)i;
    return -1;
}

bool ty_found_wants_texts(const ty_recipe *r, const ty_model *m, const ty_data_survey *s)
{
    const ty_model_preparation *p = ty_model_preparation_of(m);
    if (!p || !p->tokenizer || ty_model_n_inputs(m) == 0)
        return false;
    for (int i = 0; i < ty_model_n_inputs(m); i++)
        if (text_input(ty_model_input(m, i)->name) < 0 || ty_found_part(s, ty_found_wanted(r, m, i)) >= 0)
            return false;
    return true;
}

static ty_label_kind labels_of(const ty_model *m)
{
    const ty_model_preparation *p = ty_model_preparation_of(m);
    return p ? p->labels : TY_LABELS_GIVEN;
}

bool ty_found_makes_labels(const ty_model *m)
{
    return labels_of(m) != TY_LABELS_GIVEN;
}

const char *ty_found_label(const ty_model *m)
{
    return labels_of(m) == TY_LABELS_ANSWER ? NULL : LABELS;
}

/* ---- which parts ---- */

/* The parts that a model's text and what goes with it are. */
typedef struct text_parts {
    int text;
    int pair;                   /* the second text of a pair; -1: there is none */
    int labels;                 /* the text that is foretold, or the tags; -1: neither */
    const char *answer, *place; /* of a question: members or columns; place NULL: not said */
} text_parts;

/* Names in use for one text. */
static const char *const usual_texts[] = {"text",    "sentence", "content", "document", "review",
                                          "comment", "question", "tweet",   "message",  "prompt"};
/* For two that are compared, as the sets of GLUE and their like have them. */
static const char *const usual_pairs[][2] = {
    {"sentence1", "sentence2"}, {"premise", "hypothesis"}, {"question1", "question2"},  {"question", "sentence"},
    {"question", "passage"},    {"question", "context"},   {"query", "passage"},        {"query", "document"},
    {"text1", "text2"},         {"text_a", "text_b"},      {"sentence_a", "sentence_b"}};
/* For one that is made of the other. */
static const char *const usual_answers[][2] = {
    {"source", "target"},   {"input", "target"},      {"input", "output"},    {"inputs", "targets"},
    {"src", "tgt"},         {"document", "summary"},  {"article", "summary"}, {"article", "highlights"},
    {"text", "summary"},    {"dialogue", "summary"},  {"question", "answer"}, {"prompt", "completion"},
    {"prompt", "response"}, {"instruction", "output"}};
/* Words, and their tags. */
static const char *const usual_words[] = {"tokens", "words"};
static const char *const usual_tags[] = {"ner_tags", "tags", "labels", "label", "pos_tags", "upos", "chunk_tags"};

#define N_OF(list) (sizeof(list) / sizeof(list)[0])

/* The part of a name, in any case of letters; of texts alone where they are asked for. */
static int part_called(const ty_data_survey *s, const char *name, bool is_text)
{
    for (int i = 0; i < s->n_parts; i++)
        if (s->part[i].name && strcasecmp(s->part[i].name, name) == 0 && (s->part[i].is_text || !is_text))
            return i;
    return -1;
}

static int part_of(const ty_data_survey *s, const char *const *names, size_t n, bool is_text)
{
    for (size_t i = 0; i < n; i++) {
        int part = part_called(s, names[i], is_text);
        if (part >= 0)
            return part;
    }
    return -1;
}

/* The first two of these names that are both there. */
static bool find_two(const ty_data_survey *s, const char *const (*names)[2], size_t n, int *first, int *second)
{
    for (size_t i = 0; i < n; i++) {
        *first = part_called(s, names[i][0], true);
        *second = part_called(s, names[i][1], true);
        if (*first >= 0 && *second >= 0)
            return true;
    }
    *second = -1;
    return false;
}

static int refuse_texts(const ty_data_survey *s, const char *what, ty_error *err)
{
    ty_error_set(err, TY_E_CONFIG, "the model takes tokens of a text, and the %s data have %s", s->format, what);
    return -1;
}

/* One text of several is not told apart. */
static int refuse_any(const ty_data_survey *s, int n, ty_error *err)
{
    refuse_texts(s, n == 0 ? "none" : "several texts, of which none is called \"text\"", err);
    return ty_error_help(err,
                         "declare the fields: data.train.fields: {input_ids: {columns: NAME, tokenizer: "
                         "tokenizer.json, max_length: %d}, ...}; `trainyard help tokens` has the others",
                         USUAL_LENGTH);
}

/* Parts that are no texts of the model's, beside those that are called as targets usually are. */
typedef struct label_parts {
    int first, n;
} label_parts;

static bool is_label(const ty_data_survey *s, label_parts l, int part)
{
    const char *name = s->part[part].name;
    return (part >= l.first && part < l.first + l.n) || (name && ty_found_is_target(name));
}

/* The only text, or the first of a usual name. */
static int find_text(const ty_data_survey *s, label_parts l, text_parts *out, ty_error *err)
{
    int n = 0, only = -1;
    for (int i = 0; i < s->n_parts; i++)
        if (s->part[i].is_text && !s->part[i].is_list && !is_label(s, l, i)) {
            only = i;
            n++;
        }
    out->text = n == 1 ? only : -1;
    for (size_t i = 0; out->text < 0 && i < N_OF(usual_texts); i++) {
        int part = part_called(s, usual_texts[i], true);
        if (part >= 0 && !is_label(s, l, part))
            out->text = part;
    }
    return out->text >= 0 ? 0 : refuse_any(s, n, err);
}

/* Two texts that are usually compared, else one. */
static int find_texts(const ty_data_survey *s, label_parts l, text_parts *out, ty_error *err)
{
    if (find_two(s, usual_pairs, N_OF(usual_pairs), &out->text, &out->pair) && !is_label(s, l, out->text) &&
        !is_label(s, l, out->pair))
        return 0;
    out->pair = -1;
    return find_text(s, l, out, err);
}

/* A text and the one that is made of it: two of usual names, or the only two in their order. */
static int find_answer(const ty_data_survey *s, text_parts *out, ty_error *err)
{
    int texts[2] = {-1, -1}, n = 0;
    for (int i = 0; i < s->n_parts; i++)
        if (s->part[i].is_text && !s->part[i].is_list && n++ < 2)
            texts[n - 1] = i;
    if (find_two(s, usual_answers, N_OF(usual_answers), &out->text, &out->labels))
        return 0;
    if (n != 2) {
        refuse_texts(s, n < 2 ? "no two" : "several, of which no two are called \"source\" and \"target\"", err);
        return ty_error_help(err, "the model makes one text of another: declare input_ids (the one), decoder_input_ids "
                                  "(the other with tokens: previous) and labels (the other with pad: -100)");
    }
    out->text = texts[0];
    out->labels = texts[1];
    return 0;
}

/* target: whom the recipe names as having the labels; NULL: nobody. */
static int find_tags(const ty_data_survey *s, const char *target, text_parts *out, ty_error *err)
{
    out->text = s->is_table ? -1 : part_of(s, usual_words, N_OF(usual_words), true);
    out->labels = target ? part_called(s, target, false) : part_of(s, usual_tags, N_OF(usual_tags), false);
    if (out->text >= 0 && out->labels >= 0 && out->labels != out->text)
        return 0;
    refuse_texts(s, "no words and tags of them that could be told by their names", err);
    return ty_error_help(err, "records have lists of words and of tags: {\"tokens\": [...], \"ner_tags\": [...]}; if "
                              "they are called otherwise, declare input_ids (the words) and labels (the tags, with "
                              "tokens: tags and words: NAME)");
}

/* A column by number, a feature by name; NULL: none of these. */
static const char *place_of(const ty_data_survey *s, int part, ty_arena *a)
{
    if (part < 0)
        return NULL;
    return s->is_table ? ty_arena_printf(a, "%d", part) : s->part[part].name;
}

/* Objects of JSON Lines are no parts of a survey. */
static bool has_object(const ty_data_survey *s, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = s->left_out; p && (p = strstr(p, name)) != NULL; p += n)
        if ((p == s->left_out || p[-1] == ' ') && (p[n] == 0 || p[n] == ','))
            return true;
    return false;
}

/* A question, the text with its answer, and that one, as SQuAD's sets have it or flat. */
static int find_question(const ty_data_survey *s, text_parts *out, ty_arena *a, ty_error *err)
{
    static const char *const texts[] = {"context", "passage", "document", "text"};
    static const char *const answers[] = {"answers.text", "answer_text", "answer"};
    static const char *const places[] = {"answers.answer_start", "answer_start"};
    out->text = part_called(s, "question", true);
    out->pair = part_of(s, texts, N_OF(texts), true);
    out->answer = place_of(s, part_of(s, answers, N_OF(answers), true), a);
    out->place = place_of(s, part_of(s, places, N_OF(places), false), a);
    if (!out->answer && has_object(s, "answers")) {
        out->answer = answers[0];
        out->place = places[0];
    }
    if (out->text >= 0 && out->pair >= 0 && out->answer)
        return 0;
    refuse_texts(s, "no question, text and answer that could be told by their names", err);
    return ty_error_help(err,
                         "call them question, context, answer_text and, where it begins in the context, answer_start; "
                         "or declare input_ids, start_positions and end_positions (`trainyard help answer`)");
}

static int find_parts(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, label_parts l, text_parts *out,
                      ty_arena *a, ty_error *err)
{
    *out = (text_parts){.text = -1, .pair = -1, .labels = -1};
    switch (labels_of(m)) {
    case TY_LABELS_TEXT:
        return find_answer(s, out, err);
    case TY_LABELS_TAGS:
        return find_tags(s, r->train.target, out, err);
    case TY_LABELS_ANSWER:
        return find_question(s, out, a, err);
    case TY_LABELS_GIVEN:
        return find_texts(s, l, out, err);
    default:
        return find_text(s, l, out, err);
    }
}

/* ---- fields ---- */

static int64_t length_of(const ty_model *m)
{
    const int64_t most = ty_model_preparation_of(m)->max_length;
    const int64_t usual = labels_of(m) == TY_LABELS_ANSWER ? QUESTION_LENGTH : USUAL_LENGTH;
    return most > 0 && most < usual ? most : usual;
}

/* Of part `text` and, where that is one, `second`. */
static int make_field(const ty_model *m, const ty_data_survey *s, int text, int second, ty_map_spec spec, ty_arena *a,
                      ty_field *out, ty_error *err)
{
    const ty_model_preparation *p = ty_model_preparation_of(m);
    spec.scale = 1;
    spec.max_length = length_of(m);
    spec.tokenizer = p->tokenizer;
    spec.parts |= second >= 0 ? 1u << TY_PART_SECOND : 0;
    spec.start = p->start;
    *out = ty_field_make(spec.field);
    if (s->is_table)
        out->columns = place_of(s, text, a);
    else
        out->member = place_of(s, text, a);
    out->part[TY_PART_SECOND] = second >= 0 ? place_of(s, second, a) : NULL;
    return ty_map_new(&spec, a, &out->map, err);
}

static int make_input(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, const text_parts *parts, int i,
                      ty_arena *a, ty_field *out, ty_error *err)
{
    int row = text_input(ty_model_input(m, i)->name);
    ty_map_spec spec = {
        .field = ty_found_wanted(r, m, i), .way = TY_MAP_TOKENIZER, .token_part = text_inputs[row].part};
    if (spec.token_part == TY_TOKENS_IDS && labels_of(m) == TY_LABELS_HIDDEN)
        spec.token_part = TY_TOKENS_MASKED;
    if (!text_inputs[row].of_labels)
        return make_field(m, s, parts->text, parts->pair, spec, a, out, err);
    if (parts->labels < 0)
        return refuse_texts(s, "none for a decoder", err);
    return make_field(m, s, parts->labels, -1, spec, a, out, err);
}

/* Where the answer's first token is in the pair's row, and its last. */
static int make_places(const ty_model *m, const ty_data_survey *s, const text_parts *parts, ty_arena *a, ty_field *out,
                       ty_error *err)
{
    static const char *const names[] = {"start_positions", "end_positions"};
    for (int i = 0; i < 2; i++) {
        ty_map_spec spec = {.field = names[i], .way = TY_MAP_ANSWER, .token_part = i ? TY_TOKENS_END : TY_TOKENS_BEGIN};
        spec.parts = 1u << TY_PART_ANSWER | (parts->place ? 1u << TY_PART_PLACE : 0);
        if (make_field(m, s, parts->text, parts->pair, spec, a, &out[i], err) < 0)
            return -1;
        out[i].part[TY_PART_ANSWER] = parts->answer;
        out[i].part[TY_PART_PLACE] = parts->place;
    }
    return 2;
}

/* Returns how many fields they are. */
static int make_labels(const ty_model *m, const ty_data_survey *s, const text_parts *parts, ty_arena *a, ty_field *out,
                       ty_error *err)
{
    int rc;
    ty_map_spec spec = {.field = LABELS, .way = TY_MAP_TOKENIZER, .pad = -100};
    switch (labels_of(m)) {
    case TY_LABELS_TEXT:
        rc = make_field(m, s, parts->labels, -1, spec, a, out, err);
        break;
    case TY_LABELS_TAGS:
        spec.way = TY_MAP_TAGS;
        rc = make_field(m, s, parts->labels, parts->text, spec, a, out, err);
        break;
    case TY_LABELS_ANSWER:
        return make_places(m, s, parts, a, out, err);
    default:
        spec.token_part = labels_of(m) == TY_LABELS_NEXT ? TY_TOKENS_NEXT : TY_TOKENS_HIDDEN;
        rc = make_field(m, s, parts->text, -1, spec, a, out, err);
    }
    return rc < 0 ? -1 : 1;
}

/* "column 1, \"hypothesis\"" */
static const char *show_part(const ty_data_survey *s, int part, char out[160])
{
    const char *name = s->part[part].name;
    snprintf(out, 160, "%s %d%s%.100s%s", s->is_table ? "column" : "feature", part, name ? ", \"" : "",
             name ? name : "", name ? "\"" : "");
    return out;
}

static void tell(const ty_model *m, const ty_data_survey *s, const text_parts *parts)
{
    static const char *const labels[] = {
        [TY_LABELS_GIVEN] = "",
        [TY_LABELS_TAGS] = "; the labels are the tags of words, ",
        [TY_LABELS_NEXT] = "; the labels are the tokens that follow",
        [TY_LABELS_HIDDEN] = "; 15 % of them are hidden, others in each epoch, and these are the labels",
        [TY_LABELS_TEXT] = "; the labels are the tokens of ",
        [TY_LABELS_ANSWER] = "; the labels are the places of the answer's first and last one"};
    char text[160], pair[160] = "", other[160] = "";
    if (parts->pair >= 0)
        show_part(s, parts->pair, pair);
    if (parts->labels >= 0)
        show_part(s, parts->labels, other);
    ty_log_info("data", "no fields are declared: %s%s%s, %s up to %lld tokens by %s%s%s",
                show_part(s, parts->text, text), *pair ? ", and " : "", pair, *pair ? "together become" : "becomes",
                (long long)length_of(m), ty_model_preparation_of(m)->tokenizer, labels[labels_of(m)], other);
}

int ty_found_texts(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, int first_label, int n_labels,
                   ty_arena *a, ty_field *fields, int *n_fields, ty_error *err)
{
    text_parts parts;
    if (find_parts(r, m, s, (label_parts){first_label, n_labels}, &parts, a, err) < 0)
        return -1;
    for (int i = 0; i < ty_model_n_inputs(m); i++)
        if (make_input(r, m, s, &parts, i, a, &fields[(*n_fields)++], err) < 0)
            return -1;
    int n_labels_made = ty_found_makes_labels(m) ? make_labels(m, s, &parts, a, &fields[*n_fields], err) : 0;
    if (n_labels_made < 0)
        return -1;
    *n_fields += n_labels_made;
    tell(m, s, &parts);
    return 0;
}
