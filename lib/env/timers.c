#include "env/timers.h"

/* Vocabulary
 *   child  the first of a timer's children; all of them are due no earlier than it
 *   next   the sibling to the right
 *   prev   the sibling to the left; of a first child: the parent; of the top: NULL
 *
 * Invariants: the top has neither prev nor next. A timer that is in no heap has heap_slot
 * 0, and its links mean nothing. */

static bool is_before(const coordi_timer *a, const coordi_timer *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

/* Makes one tree of two; either may be NULL. Both are roots: no prev, no next. */
static coordi_timer *meld(coordi_timer *a, coordi_timer *b)
{
    if (a == NULL) {
        return b;
    }
    if (b == NULL) {
        return a;
    }
    coordi_timer *first = is_before(b, a) ? b : a;
    coordi_timer *second = first == a ? b : a;
    second->prev = first;
    second->next = first->child;
    if (first->child != NULL) {
        first->child->prev = second;
    }
    first->child = second;
    return first;
}

static coordi_timer *detach(coordi_timer *timer)
{
    timer->prev = NULL;
    timer->next = NULL;
    return timer;
}

/* Makes one tree of a row of siblings: pairs from left to right, then the pairs from
 * right to left. The second half is what makes taking the first one logarithmic. */
static coordi_timer *meld_row(coordi_timer *row)
{
    coordi_timer *pairs = NULL; /* a stack, linked through next */
    while (row != NULL) {
        coordi_timer *a = row;
        coordi_timer *b = a->next;
        row = b == NULL ? NULL : b->next;
        coordi_timer *pair = meld(detach(a), b == NULL ? NULL : detach(b));
        pair->next = pairs;
        pairs = pair;
    }
    coordi_timer *whole = NULL;
    while (pairs != NULL) {
        coordi_timer *pair = pairs;
        pairs = pair->next;
        whole = meld(detach(pair), whole);
    }
    return whole;
}

void coordi_heap_cancel(coordi_heap *heap, coordi_timer *timer)
{
    if (timer->heap_slot == 0) {
        return;
    }
    coordi_timer *below = meld_row(timer->child);
    if (timer == heap->top) {
        heap->top = below;
    } else {
        if (timer->prev->child == timer) {
            timer->prev->child = timer->next;
        } else {
            timer->prev->next = timer->next;
        }
        if (timer->next != NULL) {
            timer->next->prev = timer->prev;
        }
        heap->top = meld(heap->top, below);
    }
    timer->child = NULL;
    (void)detach(timer);
    timer->heap_slot = 0;
    heap->count--;
}

void coordi_heap_set(coordi_heap *heap, coordi_timer *timer, int64_t at_ms)
{
    coordi_heap_cancel(heap, timer);
    timer->at_ms = at_ms;
    timer->order = ++heap->last_order;
    timer->child = NULL;
    timer->heap_slot = 1;
    heap->top = meld(heap->top, detach(timer));
    heap->count++;
}

coordi_timer *coordi_heap_first(const coordi_heap *heap)
{
    return heap->top;
}

coordi_timer *coordi_heap_pop_due(coordi_heap *heap, int64_t now_ms, uint64_t newest)
{
    coordi_timer *first = heap->top;
    if (first == NULL || first->at_ms > now_ms || first->order > newest) {
        return NULL;
    }
    coordi_heap_cancel(heap, first);
    return first;
}
