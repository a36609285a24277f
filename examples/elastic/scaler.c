#include "scaler.h"
#include "say.h"

enum { WAIT_MS = 5000 };

typedef coord_status change_fn(coord_operator_server *server,
                               const coord_operator_request *request, int64_t wait_ms,
                               coord_operator_answer **ret, coord_error *err);

static bool change(const char *address, change_fn *how, int32_t collectors)
{
    coord_error err = {0};
    coord_operator_server *server = NULL;
    coord_operator_server_options options;
    coord_operator_request request;
    coord_operator_answer *answer = NULL;

    coord_operator_server_options_init(&options, sizeof options);
    options.system_addr = address;
    options.api_version = "v1alpha1";
    options.name_space = "default";
    options.name = "job-coordinator";
    coord_operator_request_init(&request, sizeof request);
    request.collectors = collectors;
    bool good = coord_operator_server_create(&options, &server, &err) == COORD_OK &&
                how(server, &request, WAIT_MS, &answer, &err) == COORD_OK;
    if (!good) {
        complain("operator server", &err);
    } else {
        tell("the server says: %s", answer->message);
    }
    coord_operator_answer_destroy(answer);
    coord_operator_server_destroy(server);
    return good;
}

bool scale_up(const char *server, int32_t collectors)
{
    return change(server, coord_operator_server_post, collectors);
}

bool scale_down(const char *server, int32_t collectors)
{
    return change(server, coord_operator_server_delete, collectors);
}
