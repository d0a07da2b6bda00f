# syntax=docker/dockerfile:1

FROM node:22-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
RUN npm ci --include=dev
COPY src ./src
RUN npm run build && find dist -name '*.map' -delete

FROM node:22-slim AS packages
WORKDIR /holdfast
COPY package.json package-lock.json .npmrc ./
# The client of PostgreSQL, which the package leaves to those who need it, in the version of the lock file.
RUN npm ci --omit=dev \
 && npm install --no-save --save-prod --omit=dev "pg@$(node -p "require('./package-lock.json').packages['node_modules/pg'].version")"

FROM node:22-slim
# A server needs no package manager, and every one in an image has to be patched.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
      /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-* \
 && mkdir -m 1777 /data
COPY --from=packages /holdfast /holdfast
COPY --from=build /build/dist /holdfast/dist
COPY scripts/health.mjs LICENSE /holdfast/
RUN chmod +x /holdfast/dist/bin/*.js \
 && ln -s /holdfast/dist/bin/holdfast.js /usr/local/bin/holdfast \
 && ln -s /holdfast/dist/bin/azurite.js /usr/local/bin/azurite \
 && ln -s /holdfast/dist/bin/azurite-blob.js /usr/local/bin/azurite-blob \
 && ln -s /holdfast/dist/bin/azurite-queue.js /usr/local/bin/azurite-queue \
 && ln -s /holdfast/dist/bin/azurite-table.js /usr/local/bin/azurite-table

ENV NODE_ENV=production
# The user is root, as in Azurite's image: tools copy keys into the container that only root can read, and mount folders that belong to root.
# With --user any other user serves, too, if the volume and the files are that user's.
# Also where the data goes when a tool names no folder.
WORKDIR /data
VOLUME ["/data"]
EXPOSE 10000 10001 10002 10003 10445
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --start-interval=1s --retries=3 \
  CMD ["node", "/holdfast/health.mjs"]

# No entry point: tools name the executable, as the command or as the entry point.
ENTRYPOINT []
CMD ["azurite", "--blobHost", "0.0.0.0", "--queueHost", "0.0.0.0", "--tableHost", "0.0.0.0", "--fileHost", "0.0.0.0", "--smbHost", "0.0.0.0", "--location", "/data"]
