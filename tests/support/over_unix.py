"""HTTP over a unix socket, on which the API is served."""
import http.client
import socket


class OverUnix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("carve")
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def asked(path, target, method="GET", body=None):
    """Returns the status, content type and text of the answer."""
    connection = OverUnix(path)
    connection.request(method, target, body)
    answer = connection.getresponse()
    return answer.status, answer.getheader("Content-Type"), answer.read().decode()
