#include "interaction/heartbeat.h"

static void on_check(coordi_timer *timer)
{
    coordi_heartbeats *table = COORDI_ITEM(timer, coordi_heartbeats, check);
    int64_t now = coordi_now(table->loop);

    while (!coordi_list_empty(&table->oldest_first)) {
        coordi_heartbeat *beat =
            COORDI_ITEM(table->oldest_first.next, coordi_heartbeat, link);
        int64_t silent = now - beat->last_ms;
        if (silent <= table->tolerance_ms) {
            break;
        }
        coordi_list_remove(&beat->link);
        table->lost(beat, silent);
    }
    if (!coordi_list_empty(&table->oldest_first)) {
        coordi_timer_in(table->loop, timer, table->check_ms);
    }
}

void coordi_heartbeats_init(coordi_heartbeats *table, coord_loop *loop,
                            int64_t tolerance_ms, int64_t check_ms,
                            void (*lost)(coordi_heartbeat *beat, int64_t silent_ms))
{
    table->loop = loop;
    table->tolerance_ms = tolerance_ms;
    table->check_ms = check_ms;
    table->lost = lost;
    table->check.fire = on_check;
    coordi_list_init(&table->oldest_first);
}

void coordi_heartbeats_done(coordi_heartbeats *table)
{
    coordi_timer_stop(table->loop, &table->check);
}

void coordi_heartbeats_beat(coordi_heartbeats *table, coordi_heartbeat *beat)
{
    beat->last_ms = coordi_now(table->loop);
    coordi_list_remove(&beat->link);
    coordi_list_append(&table->oldest_first, &beat->link);
    if (!coordi_timer_is_set(&table->check)) {
        coordi_timer_in(table->loop, &table->check, table->check_ms);
    }
}

void coordi_heartbeats_forget(coordi_heartbeats *table, coordi_heartbeat *beat)
{
    coordi_list_remove(&beat->link);
    if (coordi_list_empty(&table->oldest_first)) {
        coordi_timer_stop(table->loop, &table->check);
    }
}
