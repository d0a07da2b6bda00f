"""What the scripts of this folder share: who they speak to, and how they tell what they saw."""
import json
import os
import sys
import traceback
import uuid

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

URL = os.environ['HOLDFAST_URL']
ACCOUNT = os.environ['HOLDFAST_ACCOUNT']
KEY = os.environ['HOLDFAST_KEY']
CONNECTION_STRING = os.environ['HOLDFAST_CONNECTION_STRING']

# A refusal that would be tried again must be seen, and soon.
OPTIONS = {'retry_total': 0}

service = BlobServiceClient(URL, credential=KEY, **OPTIONS)
checks = []


def check(title):
    """Marks a check; the test reads the titles from the text of the script, so each stands in one literal."""

    def mark(function):
        checks.append((title, function))
        return function

    return mark


def new_container(**options):
    container = service.get_container_client(f'c-{uuid.uuid4()}')
    container.create_container(**options)
    return container


def refused(status, code, call):
    """That the call is refused with this status and code, as Azure would."""
    try:
        call()
    except HttpResponseError as error:
        seen = (error.status_code, str(getattr(error, 'error_code', None) or ''))
        seen = (seen[0], seen[1].split('.')[-1])
        # An answer to HEAD has its code in a header only, and some versions of the SDK make a name of their own of it.
        header = error.response.headers.get('x-ms-error-code')
        assert seen[0] == status and header == code, f'{seen} {header} instead of {(status, code)}'
        return error
    raise AssertionError(f'accepted instead of {(status, code)}')


class Skipped(Exception):
    pass


def skip():
    """For a check that concerns only one of the servers."""
    raise Skipped


def equal(seen, expected):
    assert seen == expected, f'{seen!r} instead of {expected!r}'


def run():
    """One JSON object a line: a title, and what went wrong or that it was skipped."""
    for title, function in checks:
        try:
            function()
            print(json.dumps({'title': title}), flush=True)
        except Skipped:
            print(json.dumps({'title': title, 'skipped': True}), flush=True)
        except Exception as error:
            fault = f'{error!r} {traceback.format_exc(limit=-3)}'
            print(json.dumps({'title': title, 'fault': fault}), flush=True)
    sys.exit(0)
