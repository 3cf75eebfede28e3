package writer

import (
	"errors"
	"net/http"
	"time"

	"rankcache/internal/httpserve"
	"rankcache/internal/redisclock"
	"rankcache/wire"
)

func problem(status int, code, title, detail string) httpserve.Problem {
	return httpserve.Problem{Status: status, Code: code, Title: title, Detail: detail}
}

// classProblems are the titles of problems with classes, by code.
var classProblems = map[string]string{
	"unknown_class":   "No such class",
	"bad_dims":        "Dimensions are not those of the class",
	"bad_by":          "Groups are not those of the class",
	"bad_data":        "The class has no data",
	"no_period":       "No season at that time",
	"board_and_class": "Board and class named",
	"op_not_allowed":  "The class does not allow the operation",
	"late":            "Command came after its period had ended",
	"ended":           "Board is closed",
	"guard":           "Beyond the guard of the class",
	"refused":         "Command was refused",
	"hide":            "Members of the board can't be hidden",
	"hidden_full":     "Board hides too many members",
}

func problemOf(err error) httpserve.Problem {
	r, ok := errors.AsType[*Refusal](err)
	waits, isNotYet := errors.AsType[*notYet](err)
	wrong, clock := errors.AsType[*redisclock.Wrong](err)
	fast, over := errors.AsType[*overRate](err)
	switch {
	case over:
		p := problem(http.StatusTooManyRequests, "member_changes", "Member is changed too often", fast.Error())
		p.RetryAfter = int(fast.until/time.Second) + 1
		return p
	case clock:
		return problem(http.StatusServiceUnavailable, "wrong_clock", "The writer's clock is wrong", wrong.Error()+"; post the same command with the same order again")
	case errors.Is(err, errNotAcked):
		return problem(http.StatusServiceUnavailable, "kafka_unavailable", "Kafka did not answer",
			"the score is changed; post the same command with the same order again so that its update is published")
	case errors.Is(err, errNotRecorded):
		return problem(http.StatusServiceUnavailable, "kafka_unavailable", "Kafka did not answer",
			"a command of a durable class is appended to the command topic first; post the same command with the same order again")
	case errors.Is(err, errUnfit):
		return problem(http.StatusServiceUnavailable, "not_durable", "Durable classes are not served", err.Error()+"; then post the same command with the same order again")
	case isNotYet:
		return problem(http.StatusServiceUnavailable, "not_yet", "The command waits for its turn", waits.Error()+"; post the same command with the same order again to learn what has become of it")
	case errors.Is(err, errLost) || errors.Is(err, errNotJudged):
		why := errLost
		if errors.Is(err, errNotJudged) {
			why = errNotJudged
		}
		return problem(http.StatusServiceUnavailable, "not_yet", "The command waits for its turn", why.Error()+"; post the same command with the same order again to learn what has become of it")
	case errors.Is(err, errAdopting):
		return problem(http.StatusServiceUnavailable, "adopting", "Board is being adopted",
			"another client has changed the board, so that a writer adds up its members, or a rebuild writes them; post the same command with the same order again")
	case refusesWrites(err) != nil:
		return problem(http.StatusServiceUnavailable, "redis_refuses", "Redis refuses writes", refusesWrites(err).Error()+"; then post the same command with the same order again")
	case !ok:
		return problem(http.StatusServiceUnavailable, "origin_unavailable", "Redis did not answer",
			"post the same command with the same order again")
	case r.Reason == "blocked":
		return problem(http.StatusForbidden, "blocked", "Board is blocked", r.Err.Error())
	case r.Reason == "class_not_allowed":
		return problem(http.StatusForbidden, r.Reason, "Token is for other classes", r.Err.Error())
	case r.Reason == "score_range":
		return problem(http.StatusUnprocessableEntity, r.Reason, "Score out of range", r.Err.Error())
	case r.Reason == "order_conflict":
		return problem(http.StatusConflict, r.Reason, "Order id was used for another change", r.Err.Error())
	case r.Reason == "too_old":
		return problem(http.StatusUnprocessableEntity, r.Reason, "Command is too old", r.Err.Error())
	case r.Reason == "early":
		return problem(http.StatusUnprocessableEntity, r.Reason, "Command is ahead of time", r.Err.Error())
	case classProblems[r.Reason] != "":
		return problem(http.StatusUnprocessableEntity, r.Reason, classProblems[r.Reason], r.Err.Error())
	case r.Reason == "type":
		return problem(http.StatusConflict, "wrong_type", "Key of the board holds something else", "")
	case r.Reason == "unreadable":
		return problem(http.StatusConflict, r.Reason, "Board can't be read", r.Err.Error())
	case r.Reason == "json" || r.Reason == "size":
		return problem(http.StatusBadRequest, "bad_request", "Command can't be read", r.Err.Error())
	}
	argument := r.Reason
	if bad, ok := errors.AsType[*wire.BadJSON](r.Err); ok {
		argument = bad.Field
	}
	return httpserve.Problem{Status: http.StatusBadRequest, Code: "bad_argument", Title: "Bad argument", Argument: argument, Detail: r.Err.Error()}
}
