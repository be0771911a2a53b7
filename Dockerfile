# An image with klr-bench in which a container runs the quickstart, or the command that it is given:
#
#     docker build -t klr-bench .
#     docker run --rm klr-bench
#     docker run --rm -v "$PWD:/work" -w /work -u "$(id -u)" -e HOME=/work klr-bench klr-bench run experiment=oskl_magic
#
# The last command keeps its results in ./results, and data and compiled code in ./.cache.
FROM python:3.13-slim
COPY . /tmp/klr-bench
RUN pip install --no-cache-dir -c /tmp/klr-bench/requirements.lock /tmp/klr-bench && rm -r /tmp/klr-bench
RUN useradd --create-home user
USER user
WORKDIR /home/user
CMD ["sh", "-c", "klr-bench run && klr-bench report experiment=quickstart"]
