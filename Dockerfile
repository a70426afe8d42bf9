# The dashboard for a class; docs/deploying.md says how to run it.
FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE requirements.txt ./
# What the server imports: without the tracer's torch, tests and checks.
RUN sed -n '/^-e/d; /^# The tracer/q; p' requirements.txt | grep -v '^dask' > server.txt \
    && python -m venv /venv && /venv/bin/pip install --no-cache-dir -r server.txt

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin triosim
COPY --from=build /venv /venv
WORKDIR /app
COPY app.py serve.py ./
COPY .streamlit .streamlit
COPY dashboard dashboard
COPY deploy/healthy.py deploy/healthy.py
COPY pages pages
COPY presets presets
COPY sample_trace sample_trace
COPY tracer tracer
COPY triosim triosim
# Byte code is written now: later the file system is read-only.
RUN /venv/bin/python -m compileall -q app.py serve.py dashboard pages tracer triosim
ENV PATH=/venv/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001
EXPOSE 8501
# A container has to listen to more than itself; compose.yaml publishes the port on loopback.
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s --retries=3 \
    CMD ["python", "deploy/healthy.py"]
CMD ["streamlit", "run", "serve.py", "--server.address", "0.0.0.0"]
