/* A doubly linked list through links inside the items. Never allocates. */
#ifndef COORDI_BASE_LIST_H
#define COORDI_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct coordi_link {
    struct coordi_link *next;
    struct coordi_link *prev;
} coordi_link;

/* The item that a link stands in. */
#define COORDI_ITEM(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

/* The head is a link of its own; an empty list points at itself. A link that is in no
 * list is all zero or points at itself. */
static inline void coordi_list_init(coordi_link *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool coordi_list_empty(const coordi_link *head)
{
    return head->next == head || head->next == NULL;
}

static inline bool coordi_linked(const coordi_link *link)
{
    return link->next != NULL && link->next != link;
}

static inline void coordi_list_append(coordi_link *head, coordi_link *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

static inline void coordi_list_prepend(coordi_link *head, coordi_link *link)
{
    coordi_list_append(head->next, link);
}

/* Does nothing to a link that is in no list. */
static inline void coordi_list_remove(coordi_link *link)
{
    if (link->next != NULL) {
        link->next->prev = link->prev;
        link->prev->next = link->next;
    }
    link->next = link;
    link->prev = link;
}

static inline coordi_link *coordi_list_pop(coordi_link *head)
{
    coordi_link *first = head->next;
    if (first == head || first == NULL) {
        return NULL;
    }
    coordi_list_remove(first);
    return first;
}

#endif
